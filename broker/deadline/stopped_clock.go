package deadline

import (
	"sync/atomic"
	"time"
)

// StoppedClock is a clock that stands until Set moves it. It begins at a whole ms, and what counts from a whole ms in ms
// is due at a whole ms: so an advance by a time to live is exactly enough. Safe for concurrent use.
type StoppedClock struct{ nanos atomic.Int64 }

// NewStoppedClock is a clock that stands at start, rounded down to a whole ms.
func NewStoppedClock(start time.Time) *StoppedClock {
	m := &StoppedClock{}
	m.nanos.Store(start.Truncate(time.Millisecond).UnixNano())
	return m
}

// Read is the Clock.
func (m *StoppedClock) Read() int64 { return m.nanos.Load() }

// Set moves the clock to an instant. The caller makes sure that it is not in the past.
func (m *StoppedClock) Set(at Instant) { m.nanos.Store(at.Time().UnixNano()) }
