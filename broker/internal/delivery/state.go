package delivery

import (
	"cmp"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/message"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// QueueState is the state of a queue at one instant.
type QueueState struct {
	Ready, Unacked           int
	ReadyBytes, UnackedBytes int64
	Waiting                  int // for another try, until they are ready again
	WaitingBytes             int64
	Persistent               int // of Ready, Unacked and Waiting
	PersistentBytes          int64
	Consumers                int
	ExclusiveConsumer        string           // tag; "" none
	Departed                 Departure        // of the last consumer, if it has none
	ActiveConsumer           string           // tag of the one that x-single-active-consumer serves; "" none
	HeadTimestamp            time.Time        // of the first ready message; zero: none
	OldestAge                time.Duration    // how long the oldest message has been in it, ready or unacked; never too low, and too high by at most 10 ms or 1/128 (ages); 0: it is empty
	TTLMillis                int64            // of messages, by arguments and policies; <0: none
	DeliveryLimit            int64            // failed deliveries a message may have; <0: no limit
	LastActiveAt             deadline.Instant // when something last happened in it
	Stats                    QueueStats
}

// Departure says which consumer of a queue was the last to leave. Its zero value: that is not known.
type Departure struct {
	Client string // whose it was, for people
	At     deadline.Instant
}

var noDeparture Departure

// Departed returns which consumer was the last to leave, if there is none now. It is cheap, unlike State.
func (q *Queue) Departed() Departure {
	q.mu.Lock()
	defer q.mu.Unlock()
	return *q.departure
}

// Depart says which consumer of a queue was the last to leave in an earlier run.
func Depart(q *Queue, d Departure) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.consumers.count == 0 && q.departure == &noDeparture {
		q.departure = &d
	}
}

// Clients are those of a queue's consumers that came first and last, of the highest and the lowest priority if there are several; "": it has none.
func Clients(q *Queue) (first, last string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, level := range q.consumers.levels {
		first, last = cmp.Or(first, level.consumers[0].Client), level.consumers[len(level.consumers)-1].Client
	}
	return first, last
}

// State returns the current state of the queue.
func (q *Queue) State() QueueState {
	q.mu.Lock()
	settings := q.Settings()
	i := QueueState{
		DeliveryLimit: settings.Core.DeliveryLimit, TTLMillis: settings.TTLMillis,
		Ready: q.core.Ready.Count, Unacked: q.core.Unacked.Count, ReadyBytes: q.core.Ready.Bytes, UnackedBytes: q.core.Unacked.Bytes,
		Consumers: q.consumers.count, LastActiveAt: q.lastActiveAt, Stats: q.counters, Departed: *q.departure,
	}
	if at := q.ages.oldest(q.core); at != 0 {
		i.OldestAge = max(q.env.Clock.Now().Sub(at), 0)
	}
	waiting := q.core.Waiting()
	i.Waiting, i.WaitingBytes = waiting.Count, waiting.Bytes
	for _, of := range []queue.Sum{q.core.Ready, q.core.Unacked, waiting} {
		i.Persistent, i.PersistentBytes = i.Persistent+of.Durable, i.PersistentBytes+of.DurableBytes
	}
	if q.consumers.exclusiveLocked() {
		i.ExclusiveConsumer = q.consumers.firstLocked().Tag
	}
	if q.consumers.active != nil {
		i.ActiveConsumer = q.consumers.active.Tag
	}
	_, head, some := q.core.Head()
	pos := store.Pos(head.Pos)
	if some {
		q.env.Store.Retain(pos, 1)
	}
	q.mu.Unlock()
	if some { // its properties are read without the lock
		p, err := amqp.ParseProperties(q.env.Store.View(pos).Properties, message.StoredLimits)
		if err == nil && p.Timestamp != 0 {
			i.HeadTimestamp = time.Unix(int64(p.Timestamp), 0)
		}
		q.env.Store.Release(pos)
	}
	return i
}

// Counts returns the ready and unacked messages and the consumers.
func (q *Queue) Counts() (ready, unacked, consumers int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Ready.Count, q.core.Unacked.Count, q.consumers.count
}
