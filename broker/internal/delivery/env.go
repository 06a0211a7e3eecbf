package delivery

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/broker/memory"
	"curfew/broker/store"
)

// Env is what all queues of a broker share.
type Env struct {
	Store    *store.Store
	Clock    *deadline.KeptClock
	Log      *zap.Logger
	TTLOff   bool
	Expiries *deadline.Stream
	Quit     <-chan struct{} // closed when the broker ends; nil: it does not end by itself

	Feed          feed
	Timers        deadline.Timers
	DelayedTimers deadline.Timers // of the delayed messages of each virtual host
	Shrinker      memory.Shrinker
	Counters      workCounters
	Holds         Holds
	VHostLocks    deadline.Longest // of the locks of virtual hosts
	Waiting       atomic.Int64     // letters in all lines
}

// workCounters are totals over all queues since the start, which no single queue counts.
type workCounters struct{ Refused, ExpiredDropped, Lapsed, DeadLettersLost, Moved atomic.Uint64 }

const (
	// feedShare is how many events of the feed an operation on very many messages may cause ahead of
	// the monitor. What others enqueue meanwhile is behind them.
	feedShare = 1 << 12
	// feedPatience is how long the operation waits for the monitor after each of its steps, at most; likewise a client for dead letters.
	feedPatience = 20 * time.Millisecond
	// feedAhead is how many events there may be that the monitor has not taken when a client publishes more: it takes them
	// within a tenth of a second. If the feed overflowed, the deadlines of everybody would wait for the monitor's next snapshot.
	feedAhead = 1 << 14
	// lettersAhead is how many letters may be on their way in a virtual host when a client publishes more that may become dead letters there:
	// they are moved within some 100 ms.
	lettersAhead = 1 << 15
	// feedStill is how long the monitor takes nothing until clients publish without waiting for it.
	feedStill = time.Second
)

// AwaitFeed is called with no lock held between two steps of an operation on very many messages, so
// that their events do not hold up those of others.
func (e *Env) AwaitFeed() { e.Feed.await(feedShare) }

// Init must be called once Clock is set, and before any queue is made.
func (e *Env) Init() {
	e.Feed.Signal = make(chan struct{}, 1)
	e.Holds.Log, e.Holds.logs.Interval = e.Log, longHoldsEvery
	e.Timers.Init(e.Clock)
	e.DelayedTimers.Init(e.Clock)
}
