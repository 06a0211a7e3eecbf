package broker

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/memory"
)

// gate holds publishers back while the disk is full or memory runs out
// (RabbitMQ: Memory and Disk Alarms). Consumers and expiry, which make room, are
// never held back.
type gate struct {
	closed atomic.Bool // there is a reason: changed with mu held

	mu      sync.Mutex
	full    bool // the store has no room for messages
	low     bool // the disk has less room than it should
	memory  bool
	files   bool          // the store finds no file descriptor
	changed chan struct{} // closed, and made anew, at each change
	asked   bool          // somebody asked, as publishers do, since memory and disk were measured last
	poke    chan struct{} // has them measured now, if that was to be a while
}

// Gate says why publishers have to wait, "" if they have not, and gives a
// channel that is closed when that changes. It has memory and disk measured now, if that
// was a while ago.
func (b *Broker) Gate() (reason string, changed <-chan struct{}) {
	g := &b.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked {
		g.asked = true
		select {
		case g.poke <- struct{}{}:
		default:
		}
	}
	return g.reason(), g.changed
}

// memoryLow says whether publishers wait because memory runs out.
func (g *gate) memoryLow() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.memory
}

// Gated says whether publishers have to wait. It costs next to nothing: to be asked before each
// message.
func (b *Broker) Gated() bool { return b.gate.closed.Load() }

// calm says whether nobody publishes and nobody is held back.
func (g *gate) calm() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	calm := !g.asked && g.reason() == ""
	g.asked = false
	return calm
}

func (g *gate) reason() string {
	var low []string
	if g.memory {
		low = append(low, "memory")
	}
	if g.full || g.low {
		low = append(low, "disk")
	}
	if g.files {
		low = append(low, "file descriptors")
	}
	if len(low) == 0 {
		return ""
	}
	return "low on " + strings.Join(low, " & ")
}

// set changes one of the reasons and tells those that wait.
func (g *gate) set(log *zap.Logger, reason *bool, to bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if *reason == to {
		return
	}
	*reason = to
	g.closed.Store(g.reason() != "")
	close(g.changed)
	g.changed = make(chan struct{})
	if why := g.reason(); why != "" {
		log.Warn("publishers are blocked; consume messages or make room", zap.String("reason", why))
	} else {
		log.Info("publishers go on")
	}
}

const (
	// levelsEvery is how often memory and disk are measured, levelsCalm while nobody
	// publishes: these looks are most of what an idle process does.
	levelsEvery = 250 * time.Millisecond
	levelsCalm  = time.Second
	// memoryResume is the share of the limit below which publishers go on.
	memoryResume = 0.9
	// diskShare bounds the limit on small disks, which are never as empty as that.
	diskShare = 16
	// clientsPart of the memory limit is what clients' unfinished work may take.
	clientsPart = 16
)

// watchLevels closes the gate while the process holds more memory than it may,
// or the disk has less room than it should. It ends with the broker.
func (b *Broker) watchLevels() {
	every, poke := levelsEvery, (<-chan struct{})(nil)
	for {
		select {
		case <-time.After(every):
		case <-poke:
		case <-b.quit:
			return
		}
		b.checkMemory()
		b.checkDisk()
		every, poke = levelsEvery, nil
		if b.gate.calm() {
			every, poke = levelsCalm, b.gate.poke
		}
	}
}

func (b *Broker) checkMemory() {
	if b.opts.MemoryLimit == 0 {
		return
	}
	switch used := b.opts.MemoryInUse(); {
	case used > b.opts.MemoryLimit:
		b.gate.set(b.log, &b.gate.memory, true)
		b.declared.low(true)
	case float64(used) < memoryResume*float64(b.opts.MemoryLimit):
		b.gate.set(b.log, &b.gate.memory, false)
		b.declared.low(false)
	}
}

// clientsShare is the part of the memory limit that clients' unfinished work may take: two
// of the largest messages at least, or nobody could publish one.
func clientsShare(o *Options) int64 {
	if o.MemoryLimit == 0 {
		return 0
	}
	return max(o.MemoryLimit/clientsPart, 2*int64(o.MaxMessageBytes))
}

// Clients is what connections and requests draw from for what they have the broker hold
// besides messages in queues.
func (b *Broker) Clients() *memory.Budget { return b.clients }

func (b *Broker) checkDisk() {
	if b.opts.DiskFreeLimit == 0 || !b.durable {
		return
	}
	free, all, err := b.opts.DiskSpace(b.opts.Store.Dir)
	if err != nil {
		return // the store's own writes will say
	}
	b.gate.set(b.log, &b.gate.low, free < min(b.opts.DiskFreeLimit, all/diskShare))
}
