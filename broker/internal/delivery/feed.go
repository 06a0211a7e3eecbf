package delivery

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"
)

// maxEvents bounds the feed. A full feed drops events and reports that once (lagged); the
// subscriber then takes a new snapshot. An event takes 32 bytes.
const maxEvents = 1 << 18

// feed carries deadline events to one subscriber. Events are pushed under the queues' locks, so
// that those of one message stay in order; the feed's own lock is a leaf.
type feed struct {
	mu     sync.Mutex
	On     atomic.Bool // somebody has subscribed: events are kept
	lagged bool
	chunks [][]deadline.Event // oldest first, all but the last one full
	next   int                // of the first chunk, the first event that was not taken
	n      int                // events that were not taken
	since  time.Time          // when events were last taken, or the first of these came
	Signal chan struct{}      // of one element, from the start
}

// feedChunk is how many events stand together: no more is ever copied when the feed grows.
const feedChunk = 1 << 12

// Push appends events. It never blocks.
func (f *feed) Push(events []deadline.Event) {
	if len(events) == 0 || !f.On.Load() {
		return
	}
	f.mu.Lock()
	first := f.n == 0
	if first {
		f.since = time.Now()
	}
	if f.n+len(events) > maxEvents {
		f.lagged = true
	} else {
		f.appendLocked(events)
	}
	f.mu.Unlock()
	if first {
		deadline.Wake(f.Signal)
	}
}

func (f *feed) appendLocked(events []deadline.Event) {
	f.n += len(events)
	for len(events) > 0 {
		if k := len(f.chunks); k == 0 || len(f.chunks[k-1]) == feedChunk {
			f.chunks = append(f.chunks, nil)
		}
		last := &f.chunks[len(f.chunks)-1]
		n := min(len(events), feedChunk-len(*last))
		*last, events = append(*last, events[:n]...), events[n:]
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
	return f.n
}

// await waits until no more than share events are pending, for feedPatience at most.
func (f *feed) await(share int) { patiently(func() bool { return f.Pending() > share }) }

// patiently waits as long as others are behind, for feedPatience at most.
func patiently(behind func() bool) {
	for waited := time.Duration(0); waited < feedPatience && behind(); waited += time.Millisecond {
		time.Sleep(time.Millisecond)
	}
}

// standsStill reports whether the subscriber takes nothing: its loop has failed, or it waits for a manual clock.
func (f *feed) standsStill() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.n > 0 && time.Since(f.since) > feedStill
}

// Take moves up to len(buf) events into buf. lagged: events were dropped since the last call.
func (f *feed) Take(buf []deadline.Event) (n int, lagged bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.On.Store(true)
	for f.n > 0 && n < len(buf) {
		some := copy(buf[n:], f.chunks[0][f.next:])
		n, f.next, f.n = n+some, f.next+some, f.n-some
		if f.next < len(f.chunks[0]) {
			break
		}
		if f.next = 0; len(f.chunks) > 1 {
			f.chunks = slices.Delete(f.chunks, 0, 1)
		} else {
			f.chunks[0] = f.chunks[0][:0] // it is used again
		}
	}
	f.since = time.Now()
	lagged, f.lagged = f.lagged, false
	return n, lagged
}
