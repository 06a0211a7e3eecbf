package monitor

import (
	"math"
	"sync/atomic"
	"time"
)

// alarm wakes a loop that sleeps until an instant, when an earlier one becomes
// known. The loop calls reset before it looks for the next instant and set after,
// so that what comes in between is not missed.
type alarm struct {
	at   atomic.Int64 // Unix ms the loop sleeps until
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
func (a *alarm) set(at int64) { a.at.Store(at) }

// before rings if at is earlier than what the loop sleeps for.
func (a *alarm) before(at int64) {
	if at < a.at.Load() {
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

// timeline relates the primary's clock, which tells whole milliseconds, to the
// finer one of the process, so that a timer need not wait up to a millisecond too
// long. Not safe for concurrent use.
type timeline struct {
	now   func() int64 // the primary's clock
	start time.Time
	// lead is how many ns the primary's time is ahead of the time since start, at
	// least: the largest figure seen, and thus ever closer to the truth.
	lead int64
}

func newTimeline(now func() int64) *timeline {
	t := &timeline{now: now, start: time.Now(), lead: math.MinInt64}
	t.read()
	return t
}

// read returns the primary's time in Unix ms and learns from it.
func (t *timeline) read() int64 {
	const millisecond = int64(time.Millisecond)
	at := t.now()
	// The process's clock is read second: then the difference is a lower bound.
	lead := at*millisecond - int64(time.Since(t.start))
	if lead > t.lead || lead <= t.lead-millisecond { // closer; or the clocks drifted
		t.lead = lead
	}
	return at
}

// until is how long it takes until the primary's clock shows at; never too short
// as long as the clocks do not drift apart.
func (t *timeline) until(at int64) time.Duration {
	return time.Duration(at*int64(time.Millisecond) - t.lead - int64(time.Since(t.start)))
}
