package broker

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// gate holds publishers back while the disk is full or memory runs out
// (RabbitMQ: Memory and Disk Alarms). Consumers and expiry, which make room, are
// never held back.
type gate struct {
	mu      sync.Mutex
	disk    bool
	memory  bool
	changed chan struct{} // closed, and made anew, at each change
}

// Gate says why publishers have to wait, "" if they have not, and gives a
// channel that is closed when that changes.
func (b *Broker) Gate() (reason string, changed <-chan struct{}) {
	g := &b.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reason(), g.changed
}

func (g *gate) reason() string {
	var low []string
	if g.memory {
		low = append(low, "memory")
	}
	if g.disk {
		low = append(low, "disk")
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
	close(g.changed)
	g.changed = make(chan struct{})
	if why := g.reason(); why != "" {
		log.Warn("publishers are blocked; consume messages or make room", zap.String("reason", why))
	} else {
		log.Info("publishers go on")
	}
}

const (
	// memoryEvery is how often memory is measured.
	memoryEvery = 250 * time.Millisecond
	// memoryResume is the share of the limit below which publishers go on.
	memoryResume = 0.9
)

// watchMemory closes the gate while the process holds more memory than limit,
// in bytes. It ends with the broker.
func (b *Broker) watchMemory(limit int64, inUse func() int64) {
	ticks := time.NewTicker(memoryEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-b.quit:
			return
		}
		switch used := inUse(); {
		case used > limit:
			b.gate.set(b.log, &b.gate.memory, true)
		case float64(used) < memoryResume*float64(limit):
			b.gate.set(b.log, &b.gate.memory, false)
		}
	}
}
