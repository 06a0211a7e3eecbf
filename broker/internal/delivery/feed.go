package delivery

import (
	"sync"
	"sync/atomic"

	"curfew/broker/deadline"
)

// maxEvents bounds the feed. A full feed drops events and reports that once (lagged); the
// subscriber then takes a new snapshot. An event takes 32 bytes.
const maxEvents = 1 << 18

// feed carries deadline events to one subscriber. Events are pushed under the queues' locks, so
// that those of one message stay in order; the feed's own lock is a leaf.
type feed struct {
	mu      sync.Mutex
	on      atomic.Bool // somebody has subscribed
	lagged  bool
	events  []deadline.Event
	reading []deadline.Event // the subscriber reads these, from next on
	next    int
	Signal  chan struct{}
}

// keptCapacity is the capacity above which an emptied buffer is discarded if less than an eighth of
// it is needed.
const keptCapacity = 1 << 14

// Init must be called before any other method.
func (f *feed) Init() { f.Signal = make(chan struct{}, 1) }

// Push appends events. It never blocks.
func (f *feed) Push(events []deadline.Event) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	first := len(f.events) == 0
	switch {
	case !f.on.Load():
		first = false
	case len(f.events)+len(events) > maxEvents:
		f.lagged = true
	default:
		f.events = append(f.events, events...)
	}
	f.mu.Unlock()
	if first {
		select {
		case f.Signal <- struct{}{}:
		default:
		}
	}
}

// Pending is how many events the subscriber has not taken; 0 if some were dropped, since it will then
// take a snapshot.
func (f *feed) Pending() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lagged {
		return 0
	}
	return len(f.events) + len(f.reading) - f.next
}

// Take moves up to len(buf) events into buf. lagged: events were dropped since the last call.
func (f *feed) Take(buf []deadline.Event) (n int, lagged bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on.Store(true)
	if f.next == len(f.reading) {
		if cap(f.reading) > keptCapacity && len(f.events) < cap(f.reading)/8 {
			f.reading = nil
		}
		f.reading, f.events, f.next = f.events, f.reading[:0], 0
	}
	n = copy(buf, f.reading[f.next:])
	f.next += n
	lagged, f.lagged = f.lagged, false
	return n, lagged
}

// Subscribe keeps events from now on.
func (f *feed) Subscribe() { f.on.Store(true) }

// Wanted reports whether anybody has subscribed.
func (f *feed) Wanted() bool { return f.on.Load() }
