package delivery

import (
	"sync/atomic"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/broker/internal/clock"
	"curfew/broker/internal/feed"
	"curfew/broker/internal/timers"
	"curfew/broker/store"
)

// Env is what all queues of a broker share.
type Env struct {
	Store    *store.Store
	Clock    *clock.Kept
	Log      *zap.Logger
	TtlOff   bool
	Expiries *deadline.Stream

	Feed          feed.Feed
	Timers        timers.Set
	DelayedTimers timers.Set // of the delayed messages of each virtual host
	Shrinker      timers.Shrinker
	Counters      workCounters
	Holds         Holds
	Waiting       atomic.Int64 // letters in all lines
}

// workCounters are totals over all queues since the start, which no single queue counts.
type workCounters struct{ Refused, ExpiredDropped, Lapsed, DeadLettersLost, Moved atomic.Uint64 }

// Init must be called once Clock is set, and before any queue is made.
func (e *Env) Init() {
	e.Feed.Init()
	e.Holds.Log = e.Log
	e.Timers.Init(e.Clock)
	e.DelayedTimers.Init(e.Clock)
}
