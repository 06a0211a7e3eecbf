package delivery

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"curfew/broker/deadline"
)

const (
	// LongHold is how long a queue's lock may be held before that is reported. A step is meant to
	// take less than a tenth of it.
	LongHold = 10 * time.Millisecond
	// loggedHold is how long it is for a log line: shorter ones happen on any busy machine.
	loggedHold = 200 * time.Millisecond
	// longHoldsEvery is the least time between two log lines of one broker.
	longHoldsEvery = time.Second
)

// Held is a queue's lock that was held for long.
type Held struct {
	VHost, Queue string
	Operation    string // publish, deliver, get, receive, settle, expire, purge, delete, cancel, timer, move, read, trim, rewrite, reschedule, renew lock, return
	For          time.Duration
}

// Holds measures how long the locks of queues are held. Safe for concurrent use.
type Holds struct {
	Longest deadline.Longest
	Touched atomic.Int64 // the most messages that were worked on under one lock since the start
	OnLong  func(Held)   // called after each long hold, and must not wait; nil: nobody wants to know
	Log     *zap.Logger

	logs rate.Sometimes
}

func (h *Holds) add(q *messages, operation string, at deadline.Instant, held time.Duration, touched int) {
	h.Longest.Add(at, held)
	if most := h.Touched.Load(); int64(touched) > most {
		h.Touched.CompareAndSwap(most, int64(touched))
	}
	if held < LongHold {
		return
	}
	x := Held{q.vhost, q.Name, operation, held}
	if held >= loggedHold {
		h.logs.Do(func() {
			h.Log.Warn("a queue was locked for long", zap.String("vhost", x.VHost), zap.String("queue", x.Queue),
				zap.String("operation", x.Operation), zap.Duration("for", x.For))
		})
	}
	if h.OnLong != nil {
		h.OnLong(x)
	}
}
