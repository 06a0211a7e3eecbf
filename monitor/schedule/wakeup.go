package schedule

import (
	"math"
	"sync/atomic"

	"curfew/broker/deadline"
)

// wakeup wakes a loop that sleeps until an instant when an earlier instant becomes known. The
// loop calls reset before it looks for the next instant and sleepUntil after, so that nothing
// that comes in between is missed.
type wakeup struct {
	until  atomic.Int64 // Unix µs the loop sleeps until
	signal chan struct{}
}

func newWakeup() *wakeup {
	w := &wakeup{signal: make(chan struct{}, 1)}
	w.reset()
	return w
}

// reset makes every instant wake the loop.
func (w *wakeup) reset() { w.until.Store(math.MaxInt64) }

// sleepUntil makes only instants before at wake the loop.
func (w *wakeup) sleepUntil(at deadline.Instant) { w.until.Store(int64(at)) }

// wakeFor wakes the loop if at is earlier than the instant it sleeps until.
func (w *wakeup) wakeFor(at deadline.Instant) {
	if int64(at) < w.until.Load() {
		deadline.Wake(w.signal)
	}
}
