package monitor

import (
	"math"
	"sync/atomic"

	"curfew/broker/deadline"
)

// alarm wakes a loop that sleeps until an instant, when an earlier one becomes
// known. The loop calls reset before it looks for the next instant and set after,
// so that what comes in between is not missed.
type alarm struct {
	at   atomic.Int64 // Unix µs the loop sleeps until
	ring chan struct{}
}

func newAlarm() *alarm {
	a := &alarm{ring: make(chan struct{}, 1)}
	a.reset()
	return a
}

// reset makes every instant ring.
func (a *alarm) reset() { a.at.Store(math.MaxInt64) }

// set makes the instants before at ring.
func (a *alarm) set(at deadline.Instant) { a.at.Store(int64(at)) }

// before rings if at is earlier than what the loop sleeps for.
func (a *alarm) before(at deadline.Instant) {
	if int64(at) < a.at.Load() {
		a.now()
	}
}

// now rings.
func (a *alarm) now() {
	select {
	case a.ring <- struct{}{}:
	default:
	}
}
