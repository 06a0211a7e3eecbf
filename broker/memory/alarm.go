package memory

import (
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
)

// AlarmOptions are the limits at which publishers are blocked. The zero value never measures anything.
type AlarmOptions struct {
	MemoryLimit   int64                                         // bytes of memory above which publishers are blocked; 0: none
	MemoryInUse   func() int64                                  // what is compared with the limit; nil: resident memory without the page cache
	Dir           string                                        // of the store; "": there is no disk
	DiskFreeLimit int64                                         // bytes of free disk below which publishers are blocked, at most a sixteenth of the disk; 0: none
	DiskSpace     func(dir string) (free, all int64, err error) // in bytes; nil: those of Dir's file system
	OnMemory      func(low bool)                                // called after each measurement that finds memory above the limit, or well below it
	Log           *zap.Logger
}

// Alarm reports whether publishers are blocked because disk or memory runs low
// (RabbitMQ: Memory and Disk Alarms). Consumers and expiry, which make room, are
// never blocked. Safe for concurrent use.
type Alarm struct {
	AlarmOptions // not to be changed; MemoryInUse is always there

	blocked atomic.Bool // there is a reason; changed with mu held

	mu      sync.Mutex // leaf
	full    bool       // the store has no room for messages
	low     bool       // the disk has less free space than the limit
	memory  bool
	files   bool          // the store gets no file descriptor
	changed chan struct{} // closed, and made again, at each change
	asked   bool          // Reason was called, as publishers do, since the last measurement
	measure chan struct{} // asks for a measurement at once
}

// NewAlarm makes an alarm that is not raised. Run measures.
func NewAlarm(o AlarmOptions) *Alarm {
	if o.MemoryInUse == nil {
		o.MemoryInUse = memoryInUse
	}
	if o.DiskSpace == nil {
		o.DiskSpace = DiskSpace
	}
	return &Alarm{AlarmOptions: o, changed: make(chan struct{}), measure: make(chan struct{}, 1)}
}

// Reason returns why publishers are blocked, "" if they are not, and a channel that is closed
// when that changes. While memory and disk are measured rarely, it asks for a measurement.
func (a *Alarm) Reason() (reason string, changed <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.asked {
		a.asked = true
		deadline.Wake(a.measure)
	}
	return a.reasonLocked(), a.changed
}

// Last is the reason as it was last measured. It asks for no measurement.
func (a *Alarm) Last() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reasonLocked()
}

// Low returns which resources are low.
func (a *Alarm) Low() (memory, disk bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.memory, a.full || a.low
}

// Blocked reports whether publishers are blocked. It is cheap enough to be called for each message.
func (a *Alarm) Blocked() bool { return a.blocked.Load() }

// Store notes the state of the store: with full it has no room for messages, with noFiles it gets
// no file descriptor.
func (a *Alarm) Store(full, noFiles bool) {
	a.set(&a.files, noFiles)
	a.set(&a.full, full)
}

// idle reports whether nobody has published since the last call and nobody is blocked.
func (a *Alarm) idle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	idle := !a.asked && a.reasonLocked() == ""
	a.asked = false
	return idle
}

func (a *Alarm) reasonLocked() string {
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

// set changes one of the reasons and closes changed.
func (a *Alarm) set(reason *bool, to bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if *reason == to {
		return
	}
	*reason = to
	a.blocked.Store(a.reasonLocked() != "")
	close(a.changed)
	a.changed = make(chan struct{})
	if why := a.reasonLocked(); why != "" {
		a.Log.Warn("publishers are blocked; consume messages or make room", zap.String("reason", why))
	} else {
		a.Log.Info("publishers are no longer blocked")
	}
}

const (
	// levelsEvery is how often memory and disk are measured. While nobody publishes, it is once a second.
	levelsEvery = 250 * time.Millisecond
	// memoryResume is the share of the limit below which publishers are no longer blocked.
	memoryResume = 0.9
	// collectEvery is how often garbage is collected while memory is low. Publishers that wait make none, and so would wait for minutes until it
	// is collected anyway.
	collectEvery = 5 * time.Second
	// diskShare bounds the limit on small disks, which would never have enough free space.
	diskShare = 16
)

// Run measures, and raises and clears the alarm. It returns when quit is closed.
func (a *Alarm) Run(quit <-chan struct{}) {
	every, measure := levelsEvery, (<-chan struct{})(nil)
	var collected time.Time
	for {
		select {
		case <-time.After(every):
		case <-measure:
		case <-quit:
			return
		}
		a.checkMemory()
		a.checkDisk()
		if memory, _ := a.Low(); memory && time.Since(collected) >= collectEvery {
			debug.FreeOSMemory()
			collected = time.Now()
		}
		every, measure = levelsEvery, nil
		if a.idle() {
			every, measure = deadline.UntilSecond(time.Now()), a.measure
		}
	}
}

func (a *Alarm) checkMemory() {
	if a.MemoryLimit == 0 {
		return
	}
	switch used := a.MemoryInUse(); {
	case used > a.MemoryLimit:
		a.memoryIs(true)
	case float64(used) < memoryResume*float64(a.MemoryLimit):
		a.memoryIs(false)
	}
}

func (a *Alarm) memoryIs(low bool) {
	a.set(&a.memory, low)
	if a.OnMemory != nil {
		a.OnMemory(low)
	}
}

// Disk is how much is free where messages are kept, and how much is to be, in bytes; free is -1 if they are in memory only, or that is not known.
func (a *Alarm) Disk() (free, limit int64) {
	if a.Dir != "" {
		if free, all, err := a.DiskSpace(a.Dir); err == nil {
			return free, min(a.DiskFreeLimit, all/diskShare)
		}
	}
	return -1, 0
}

func (a *Alarm) checkDisk() {
	if a.DiskFreeLimit == 0 {
		return
	}
	if free, limit := a.Disk(); free >= 0 { // otherwise the store finds out when it writes
		a.set(&a.low, free < limit)
	}
}
