package resources

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Options say when publishers are blocked. The zero value never measures anything.
type Options struct {
	MemoryLimit   int64                                         // bytes of memory above which publishers wait; 0: none
	MemoryInUse   func() int64                                  // what is held against it; nil: resident memory, page cache not counted
	Dir           string                                        // of the store; "" has no disk
	DiskFreeLimit int64                                         // bytes of free disk below which publishers wait, a sixteenth of the disk at most; 0: none
	DiskSpace     func(dir string) (free, all int64, err error) // in bytes; nil: of the file system Dir is in
	OnMemory      func(low bool)                                // called after each look at the memory that finds it low, or fine
	Log           *zap.Logger
}

// Alarm holds publishers back while the disk is full or memory runs out
// (RabbitMQ: Memory and Disk Alarms). Consumers and expiry, which make room, are
// never held back. Safe for concurrent use.
type Alarm struct {
	opts   Options
	closed atomic.Bool // there is a reason: changed with mu held

	mu      sync.Mutex // leaf
	full    bool       // the store has no room for messages
	low     bool       // the disk has less room than it should
	memory  bool
	files   bool          // the store finds no file descriptor
	changed chan struct{} // closed, and made again, at each change
	asked   bool          // somebody asked, as publishers do, since memory and disk were measured last
	measure chan struct{} // has them measured now, if that was to be a while
}

// New makes an alarm that has nothing to say yet. Run measures.
func New(o Options) *Alarm {
	if o.MemoryInUse == nil {
		o.MemoryInUse = memoryInUse
	}
	if o.DiskSpace == nil {
		o.DiskSpace = DiskSpace
	}
	return &Alarm{opts: o, changed: make(chan struct{}), measure: make(chan struct{}, 1)}
}

// Reason says why publishers have to wait, "" if they have not, and gives a
// channel that is closed when that changes. It has memory and disk measured now, if that
// was a while ago.
func (a *Alarm) Reason() (reason string, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.asked {
		a.asked = true
		select {
		case a.measure <- struct{}{}:
		default:
		}
	}
	return a.reason(), a.changed
}

// MemoryInUse is what is held against the memory limit, in bytes.
func (a *Alarm) MemoryInUse() int64 { return a.opts.MemoryInUse() }

// Low says which resources run out.
func (a *Alarm) Low() (memory, disk bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.memory, a.full || a.low
}

// MemoryLow reports whether publishers wait because memory runs out.
func (a *Alarm) MemoryLow() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.memory
}

// Blocked reports whether publishers have to wait. It costs next to nothing: to be asked before each
// message.
func (a *Alarm) Blocked() bool { return a.closed.Load() }

// Store notes what the store has to say: full, it has no room for messages; noFiles, it finds
// no file descriptor.
func (a *Alarm) Store(full, noFiles bool) {
	a.set(&a.files, noFiles)
	a.set(&a.full, full)
}

// calm reports whether nobody publishes and nobody is held back.
func (a *Alarm) calm() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	calm := !a.asked && a.reason() == ""
	a.asked = false
	return calm
}

func (a *Alarm) reason() string {
	var low []string
	if a.memory {
		low = append(low, "memory")
	}
	if a.full || a.low {
		low = append(low, "disk")
	}
	if a.files {
		low = append(low, "file descriptors")
	}
	if len(low) == 0 {
		return ""
	}
	return "low on " + strings.Join(low, " & ")
}

// set changes one of the reasons and tells those that wait.
func (a *Alarm) set(reason *bool, to bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *reason == to {
		return
	}
	*reason = to
	a.closed.Store(a.reason() != "")
	close(a.changed)
	a.changed = make(chan struct{})
	if why := a.reason(); why != "" {
		a.opts.Log.Warn("publishers are blocked; consume messages or make room", zap.String("reason", why))
	} else {
		a.opts.Log.Info("publishers go on")
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
)

// Run blocks publishers while the process holds more memory than it may, or the disk has less
// room than it should. It returns when quit is closed.
func (a *Alarm) Run(quit <-chan struct{}) {
	every, measure := levelsEvery, (<-chan struct{})(nil)
	for {
		select {
		case <-time.After(every):
		case <-measure:
		case <-quit:
			return
		}
		a.checkMemory()
		a.checkDisk()
		every, measure = levelsEvery, nil
		if a.calm() {
			every, measure = levelsCalm, a.measure
		}
	}
}

func (a *Alarm) checkMemory() {
	if a.opts.MemoryLimit == 0 {
		return
	}
	switch used := a.opts.MemoryInUse(); {
	case used > a.opts.MemoryLimit:
		a.memoryIs(true)
	case float64(used) < memoryResume*float64(a.opts.MemoryLimit):
		a.memoryIs(false)
	}
}

func (a *Alarm) memoryIs(low bool) {
	a.set(&a.memory, low)
	if a.opts.OnMemory != nil {
		a.opts.OnMemory(low)
	}
}

func (a *Alarm) checkDisk() {
	if a.opts.DiskFreeLimit == 0 || a.opts.Dir == "" {
		return
	}
	free, all, err := a.opts.DiskSpace(a.opts.Dir)
	if err != nil {
		return // the store's own writes will say
	}
	a.set(&a.low, free < min(a.opts.DiskFreeLimit, all/diskShare))
}
