package broker

import (
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Sink is where a consumer's messages go: the channel it was started on.
type Sink interface {
	// Pull takes up to most messages from src for c. It is called under the
	// queue's lock, must not block and must not call the broker. more is false
	// when c can take nothing further until Wake (no credit, a full outbox).
	Pull(c *Consumer, src *Source, most int) (taken int, more bool)
	// Cancelled tells that c's queue is gone. No lock is held.
	Cancelled(c *Consumer)
}

// Consumer is one basic.consume. Its exported fields are set before Consume and
// then left alone.
type Consumer struct {
	Tag       string
	NoAck     bool       // messages are settled as they are taken
	Exclusive bool       // of no meaning on a quorum queue, as in RabbitMQ
	Args      amqp.Table // of basic.consume; Consume reads them and lets them go
	Sink      Sink

	// Set by Consume:
	Priority      int64 // x-priority: the highest is served first while it can take
	TimeoutMillis int64 // x-consumer-timeout; 0 not set

	queue   *Queue
	status  atomic.Pointer[Status]
	waiting bool // guarded by queue.mu: not offered anything until Wake
	unacked int  // guarded by queue.mu: messages taken and not settled
}

// Status is what a consumer gets of its queue, in RabbitMQ's words.
type Status string

const (
	// Up: it is served in its turn.
	Up Status = "up"
	// SingleActive: it is the one that x-single-active-consumer serves.
	SingleActive Status = "single_active"
	// Waiting: another one is.
	Waiting Status = "waiting"
)

// Status may be asked at any time.
func (c *Consumer) Status() Status {
	if s := c.status.Load(); s != nil {
		return *s
	}
	return Up
}

func (c *Consumer) become(s Status) { c.status.Store(&s) }

// Queue is the queue the consumer is on.
func (c *Consumer) Queue() *Queue { return c.queue }

// Delivery is one message handed to a consumer or a get.
type Delivery struct {
	Seq         queue.Seq
	Message     store.Message // valid during the call it is handed over in
	Redelivered bool
	Locked      bool  // it has a lock that lapses (x-lock-duration)
	Ready       int   // messages still ready behind it
	At          int64 // Unix µs by the broker's clock: now

	// Holder is set by the function that a get shows the message to: who holds it
	// from now on, to be asked when its lock lapses. A consumer's is its Sink.
	Holder Holder
}

// Source yields a queue's messages to a Sink, within one Pull.
type Source struct {
	q      *Queue
	s      *step
	c      *Consumer // nil: a get
	settle bool
	mode   deliveryMode
}

// Next takes the next ready message into d; false when there is none. What has
// expired is skipped and expires.
func (src *Source) Next(d *Delivery) bool {
	t, ok := src.q.core.Take(src.s.now, &src.s.fx)
	if !ok {
		return false
	}
	locked := !src.settle && src.q.set().lockMillis > 0
	if src.settle {
		src.q.core.Ack(t.Seq, &src.s.fx)
	} else if src.c != nil {
		src.c.unacked++
	}
	if locked {
		src.q.lockDelivery(src.s, t.Seq, src.c)
	}
	src.q.tally.out[src.mode]++
	if t.Redelivered {
		src.q.tally.redelivered++
	}
	*d = Delivery{
		Seq: t.Seq, Message: src.s.b.store.View(store.Pos(t.Pos)), Redelivered: t.Redelivered,
		Locked: locked, Ready: src.q.core.Ready(), At: src.s.now,
	}
	if t.Flags&queue.Hidden != 0 {
		d.Message.Properties = withoutBCC(d.Message.Properties)
	}
	if src.q.asked.kind == Quorum {
		src.s.props = countDeliveries(src.s.props, d.Message.Properties, t.Deliveries)
		d.Message.Properties = src.s.props
	}
	if what := src.q.set().shows; what != 0 {
		d.Message.Properties = src.s.show(src.q, what, &t, !src.settle, d.Message.Properties)
	}
	return true
}

// Consume puts c on the queue; it is offered nothing before its first Wake.
// Errors: 403 when the queue has or would need an exclusive consumer, or serves
// one at a time, 404 when it was deleted meanwhile, 406 for a wrong argument.
func (q *Queue) Consume(c *Consumer) error {
	if err := q.parseConsume(c); err != nil {
		return err
	}
	c.Args = nil
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return q.vh.noQueue(q.name)
	}
	if q.asked.kind == Classic && (q.consumers.exclusive() || c.Exclusive && (q.asked.singleActive || q.consumers.count > 0)) {
		return q.inExclusiveUse()
	}
	c.queue, c.waiting = q, true
	if q.asked.singleActive {
		c.become(Waiting)
	}
	q.consumers.add(c)
	q.choose()
	q.consumed, q.idleAt = true, 0
	return nil
}

func (q *Queue) inExclusiveUse() error {
	return amqp.NewException(amqp.AccessRefused, 0, 0, "%s in exclusive use", q.Label())
}

// Wake says that c may take again: messages that wait are offered at once.
func (c *Consumer) Wake() {
	s := c.queue.vh.b.step()
	c.queue.resume(s, c)
	s.done()
}

func (q *Queue) resume(s *step, c *Consumer) {
	q.lock(s)
	defer q.mu.Unlock()
	c.waiting = false
	q.dispatch(s)
	q.finish(s, Lazy)
}

// Cancel takes c off its queue; an auto-delete queue goes with its last one.
// Messages c holds unacked stay so.
func (c *Consumer) Cancel() {
	q := c.queue
	s := q.vh.b.step()
	last := q.takeOff(s, c)
	s.done()
	if last && q.declared.AutoDelete {
		q.vh.remove(q, func() error {
			if q.consumers.count > 0 {
				return errInUse
			}
			return nil
		})
	}
}

// takeOff removes a consumer and says whether it was the last. If it was the
// active one, the next takes what waits.
func (q *Queue) takeOff(s *step, c *Consumer) (last bool) {
	q.lock(s)
	defer q.mu.Unlock()
	if !q.consumers.remove(c) {
		return false
	}
	if q.consumers.count == 0 {
		q.active = nil
		q.use()
		return true
	}
	if q.active == c {
		q.active = nil
		q.choose()
	}
	q.dispatch(s)
	q.finish(s, Lazy)
	return false
}

// Get takes the next ready message (basic.get) and shows it to fn under the
// queue's lock; false when there is none. It counts as use for x-expires. An
// exclusive consumer does not stand in its way, as in RabbitMQ. Errors: 404 when
// the queue was deleted meanwhile, 405 on a quorum queue that serves one consumer
// at a time.
func (q *Queue) Get(noAck bool, fn func(*Delivery)) (bool, error) {
	s := q.vh.b.step()
	defer s.done()
	q.lock(s)
	defer q.mu.Unlock()
	if q.deleted {
		return false, q.vh.noQueue(q.name)
	}
	if q.asked.singleActive && q.asked.kind == Quorum {
		return false, amqp.NewException(amqp.ResourceLocked, 0, 0,
			"cannot obtain access to locked %s. basic.get operations are not supported by quorum queues with single active consumer", q.Label())
	}
	q.use()
	s.source = Source{q: q, s: s, settle: noAck, mode: modeOf(true, noAck)}
	var d Delivery
	ok := s.source.Next(&d)
	if ok {
		fn(&d)
		if d.Locked {
			q.locks.find(d.Seq).holder = d.Holder
		}
	} else {
		q.tally.getEmpty++
	}
	q.finish(s, Lazy)
	return ok, nil
}

// Settlement is what becomes of unacked messages.
type Settlement uint8

const (
	// Ack: done with.
	Ack Settlement = iota
	// Reject: to the dead-letter exchange, if there is one, else dropped.
	Reject
	// Requeue: back to their places, which counts as a failed delivery; expired
	// ones expire.
	Requeue
)

// Settle ends the deliveries of seqs, in order; those not unacked are passed
// over. c, if not nil, is the consumer of this queue that they were made to, and
// has credit again.
func (q *Queue) Settle(how Settlement, seqs []queue.Seq, c *Consumer) {
	s := q.vh.b.step()
	q.settle(s, how, seqs, c)
	s.done()
}

func (q *Queue) settle(s *step, how Settlement, seqs []queue.Seq, c *Consumer) {
	q.lock(s)
	defer q.mu.Unlock()
	q.stir(s.now)
	settled := 0
	for _, seq := range seqs {
		if q.settleOne(s, how, seq) {
			settled++
			if len(q.locks.held) > 0 {
				q.locks.release(seq)
			}
		}
	}
	if c != nil && c.queue == q {
		c.waiting = false
		c.unacked -= settled
		q.choose()
	}
	q.finish(s, Requeued)
	q.dispatch(s)
	if q.set().limited() {
		q.core.Trim(&s.fx)
	}
	q.finish(s, Lazy)
}

func (q *Queue) settleOne(s *step, how Settlement, seq queue.Seq) bool {
	switch how {
	case Ack:
		ok := q.core.Ack(seq, &s.fx)
		if ok {
			q.tally.acked++
		}
		return ok
	case Reject:
		return q.core.Reject(seq, &s.fx)
	}
	ok := q.core.Requeue(s.now, seq, true, &s.fx)
	if ok && (q.asked.kind == Quorum || q.set().maxDeliveries > 0) {
		q.amend(s, seq) // the count outlives a restart
	}
	return ok
}
