package delivery

import (
	"sync"
	"sync/atomic"

	"curfew/broker/deadline"
)

// feedEvents bounds the feed. A full feed drops events and reports that once
// (lagged); the subscriber then takes a new snapshot. 32 B each.
const feedEvents = 1 << 18

// feed carries deadline events to one subscriber. Leaf lock: pushed to under
// queue locks so that the events of one message stay in order.
type feed struct {
	mu      sync.Mutex
	on      atomic.Bool // somebody has subscribed
	lagged  bool
	events  []deadline.Event
	reading []deadline.Event // what the subscriber takes from, from next on
	next    int
	Signal  chan struct{}
}

// feedKeep is the capacity above which an emptied buffer is given up if no more than an eighth
// of it was needed.
const feedKeep = 1 << 14

func (f *feed) init() { f.Signal = make(chan struct{}, 1) }

// Push appends events; never blocks.
func (f *feed) Push(events []deadline.Event) {
	if len(events) == 0 {
		return
	}
	f.mu.Lock()
	first := len(f.events) == 0
	switch {
	case !f.on.Load():
		first = false
	case len(f.events)+len(events) > feedEvents:
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

// Take moves up to len(buf) events into buf.
func (f *feed) Take(buf []deadline.Event) (n int, lagged bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.on.Store(true)
	if f.next == len(f.reading) {
		if cap(f.reading) > feedKeep && len(f.events) < cap(f.reading)/8 {
			f.reading = nil
		}
		f.reading, f.events, f.next = f.events, f.reading[:0], 0
	}
	n = copy(buf, f.reading[f.next:])
	f.next += n
	lagged, f.lagged = f.lagged, false
	return n, lagged
}

// Subscribe has events kept from now on.
func (f *feed) Subscribe() { f.on.Store(true) }
