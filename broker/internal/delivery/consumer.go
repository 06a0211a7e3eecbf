package delivery

import (
	"bytes"
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/message"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Sink is where a consumer's messages go: the channel it was started on.
type Sink interface {
	// Pull takes up to most messages from src for c. It is called under the
	// queue's lock, must not block and must not call the broker. more is false
	// when c can take no more until Wake (no credit, a full outbox).
	Pull(c *Consumer, src *Source, most int) (taken int, more bool)
	// Cancelled is called when c's queue was deleted. No lock is held.
	Cancelled(c *Consumer)
}

// Consumer is one basic.consume. Its exported fields are set before Consume and
// then left alone.
type Consumer struct {
	Tag       string
	NoAck     bool       // messages are settled as they are taken
	Exclusive bool       // has no meaning on a quorum queue, as in RabbitMQ
	Args      amqp.Table // of basic.consume; Consume reads them and sets them to nil
	Sink      Sink
	Client    string // whose it is, for people

	// Set by Consume:
	Priority      int64 // x-priority: the highest is served first while it can take
	TimeoutMillis int64 // x-consumer-timeout; 0 not set

	queue   *Queue
	status  atomic.Pointer[Status]
	number  uint64 // in the order in which those of its priority came
	waiting bool   // guarded by queue.mu: it is offered nothing until Wake
	unacked int    // guarded by queue.mu: messages taken and not settled
}

// Status is the state of a consumer, in RabbitMQ's words.
type Status string

const (
	// Up: it is served in its turn.
	Up Status = "up"
	// SingleActive: it is the one that x-single-active-consumer serves.
	SingleActive Status = "single_active"
	// Waiting: x-single-active-consumer serves another one.
	Waiting Status = "waiting"
)

// Status may be called at any time, with or without locks.
func (c *Consumer) Status() Status {
	if s := c.status.Load(); s != nil {
		return *s
	}
	return Up
}

func (c *Consumer) setStatus(s Status) { c.status.Store(&s) }

// Queue is the queue that the consumer is on.
func (c *Consumer) Queue() *Queue { return c.queue }

// Delivery is one message handed to a consumer or a get.
type Delivery struct {
	Seq         queue.Seq
	Message     store.Message // valid only during the call that hands it over
	Redelivered bool
	Failed      uint16           // earlier deliveries that failed
	Locked      bool             // it has a lock that lapses (x-lock-duration)
	Ready       int              // messages still ready behind it
	At          deadline.Instant // now, by the broker's clock

	// LockHolder is set by the function to which a get passes the message. It holds the message
	// from now on and is asked when the lock lapses. For a consumer it is the Sink.
	LockHolder LockHolder

	store *store.Store
	pos   store.Pos
}

// Keep returns a copy whose message is valid until release is called: what takes long with it is done without the queue's
// lock, which is held when it is handed over.
func (d *Delivery) Keep() (kept Delivery, release func()) {
	d.store.Retain(d.pos, 1)
	kept = *d
	kept.Message.Properties = bytes.Clone(kept.Message.Properties) // they may be in memory that the next delivery uses
	return kept, func() { kept.store.Release(kept.pos) }
}

// Source yields a queue's messages to a Sink, within one Pull.
type Source struct {
	q      *Queue
	s      *Transition
	c      *Consumer // nil: a get
	settle bool      // without an acknowledgement
	get    bool
}

// Next takes the next ready message into d; false when there is none. Messages past their
// deadline expire on the way.
func (src *Source) Next(d *Delivery) bool {
	t, ok := src.q.core.Take(src.s.Now, &src.s.fx)
	if ok {
		src.hand(&t, d)
	}
	return ok
}

// hand makes d of a message that was taken.
func (src *Source) hand(t *queue.Delivery, d *Delivery) {
	locked := !src.settle && src.q.Settings().LockMillis > 0
	if src.settle {
		src.q.core.Settle(t.Seq, queue.Acked, &src.s.fx)
	} else if src.c != nil {
		src.c.unacked++
	}
	if locked {
		src.q.Locks.addLocked(src.s, t.Seq, src.c)
	}
	src.q.counters.Count(src.get, src.settle, t.Redelivered)
	d.Seq, d.Redelivered, d.Failed, d.Locked = t.Seq, t.Redelivered, t.Deliveries, locked // a Delivery is large to copy
	d.Message = src.s.Env.Store.View(store.Pos(t.Pos))
	d.Ready, d.At, d.LockHolder = src.q.core.Ready.Count, src.s.Now, nil
	d.store, d.pos = src.s.Env.Store, store.Pos(t.Pos)
	if t.Flags&queue.Hidden != 0 {
		d.Message.Properties = message.WithoutBCC(d.Message.Properties)
	}
	if src.q.Arguments.Type == policy.Quorum {
		src.s.props = message.CountDeliveries(src.s.props, d.Message.Properties, t.Deliveries)
		d.Message.Properties = src.s.props
	}
	if what := src.q.Settings().Shows; what != 0 {
		d.Message.Properties = src.s.withHeadersLocked(src.q, what, t, !src.settle, d.Message.Properties)
	}
}

// Consume puts c on the queue; it is offered nothing until its first Wake. Errors: 403 on a
// classic queue with an exclusive consumer, or if c is exclusive and the queue has consumers or
// serves one at a time; 404 if the queue has been deleted; 406 for a wrong argument.
func (q *Queue) Consume(c *Consumer) error {
	var err error
	if c.Priority, c.TimeoutMillis, err = policy.ParseConsumer(q.Arguments.Type, q.Label(), c.Args); err != nil {
		return err
	}
	c.Args = nil
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return NoQueue(q.vhost, q.Name)
	}
	if q.Arguments.Type == policy.Classic && (q.consumers.exclusiveLocked() || c.Exclusive && (q.Arguments.SingleActive || q.consumers.count > 0)) {
		return amqp.NewException(amqp.AccessRefused, 0, 0, "%s in exclusive use", q.Label())
	}
	c.queue = q
	if q.Arguments.SingleActive {
		c.setStatus(Waiting)
	}
	q.consumers.addLocked(c)
	q.consumers.chooseActiveLocked()
	q.departure, q.Idle.expiresAt = &noDeparture, 0
	return nil
}

// Wake lets c take again: messages that wait are offered to it at once.
func (c *Consumer) Wake() {
	q, s := c.queue, c.queue.env.Begin()
	if q.locked(s, "deliver", func() bool { q.consumers.waitLocked(c, false); return q.serveLocked(s) }) {
		q.serve(s)
	}
	s.Done()
}

// Cancel takes c off its queue. An auto-delete queue is deleted with its last consumer. Messages
// that c holds stay unacked.
func (c *Consumer) Cancel() {
	if c.queue == nil { // it never got there
		return
	}
	s := c.queue.env.Begin()
	last, more := c.leave(s)
	if more {
		c.queue.serve(s)
	}
	s.Done()
	if last && c.queue.autoDelete {
		c.queue.Registered.LastConsumerGone()
	}
}

// leave takes c off its queue and reports whether it was the last one. If it was the active
// one, ready messages are offered to the next.
func (c *Consumer) leave(s *Transition) (last, more bool) {
	q := c.queue
	q.lock(s)
	defer q.unlock(s, "cancel")
	if !q.consumers.removeLocked(c) {
		return false, false
	}
	if q.consumers.count == 0 {
		q.departure = &Departure{c.Client, q.env.Clock.Now()}
		q.flow.endLocked()
		q.Idle.renewLocked()
		return true, false
	}
	q.consumers.chooseActiveLocked()
	return false, q.serveLocked(s)
}
