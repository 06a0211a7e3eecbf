package broker

import (
	"slices"

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

// Consumer is one basic.consume. Its fields are set before Consume and then
// left alone.
type Consumer struct {
	Tag       string
	NoAck     bool // messages are settled as they are taken
	Exclusive bool
	Sink      Sink

	queue   *Queue
	waiting bool // guarded by queue.mu: not offered anything until Wake
}

// Queue is the queue the consumer is on.
func (c *Consumer) Queue() *Queue { return c.queue }

// Delivery is one message handed to a consumer or a get.
type Delivery struct {
	Seq         queue.Seq
	Message     store.Message // valid during the call it is handed over in
	Redelivered bool
	Ready       int // messages still ready behind it
}

// Source yields a queue's messages to a Sink, within one Pull.
type Source struct {
	q      *Queue
	s      *step
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
	if src.settle {
		src.q.core.Ack(t.Seq, &src.s.fx)
	}
	src.q.tally.out[src.mode]++
	if t.Redelivered {
		src.q.tally.redelivered++
	}
	*d = Delivery{
		Seq: t.Seq, Message: src.s.b.store.View(store.Pos(t.Pos)), Redelivered: t.Redelivered,
		Ready: src.q.core.Ready(),
	}
	if t.Flags&queue.Hidden != 0 {
		d.Message.Properties = withoutBCC(d.Message.Properties)
	}
	return true
}

// Consume puts c on the queue; it is offered nothing before its first Wake.
// Errors: 403 when the queue has or would need an exclusive consumer, 404 when
// it was deleted meanwhile.
func (q *Queue) Consume(c *Consumer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.deleted {
		return q.vh.noQueue(q.name)
	}
	if len(q.consumers) > 0 && (c.Exclusive || q.consumers[0].Exclusive) {
		return q.inExclusiveUse()
	}
	c.queue, c.waiting = q, true
	q.consumers = append(q.consumers, c)
	q.consumed, q.idleAt = true, 0
	return nil
}

func (q *Queue) inExclusiveUse() error {
	return amqp.NewException(amqp.AccessRefused, 0, 0, "%s in exclusive use", q.label())
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
	if last := q.takeOff(c); last && q.declared.AutoDelete {
		q.vh.remove(q, func() error {
			if len(q.consumers) > 0 {
				return errInUse
			}
			return nil
		})
	}
}

// takeOff removes a consumer and says whether it was the last.
func (q *Queue) takeOff(c *Consumer) (last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.consumers, c)
	if i < 0 {
		return false
	}
	q.consumers = slices.Delete(q.consumers, i, i+1)
	if q.turn > i {
		q.turn--
	}
	if len(q.consumers) > 0 {
		return false
	}
	q.turn = 0
	q.use()
	return true
}

// Get takes the next ready message (basic.get) and shows it to fn under the
// queue's lock; false when there is none. It counts as use for x-expires.
func (q *Queue) Get(noAck bool, fn func(*Delivery)) (bool, error) {
	s := q.vh.b.step()
	defer s.done()
	q.lock(s)
	defer q.mu.Unlock()
	if q.deleted {
		return false, q.vh.noQueue(q.name)
	}
	if len(q.consumers) > 0 && q.consumers[0].Exclusive {
		return false, q.inExclusiveUse()
	}
	q.use()
	s.source = Source{q: q, s: s, settle: noAck, mode: modeOf(true, noAck)}
	var d Delivery
	ok := s.source.Next(&d)
	if ok {
		fn(&d)
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
// over. wake, if not nil, is a consumer of this queue that has credit again.
func (q *Queue) Settle(how Settlement, seqs []queue.Seq, wake *Consumer) {
	s := q.vh.b.step()
	q.settle(s, how, seqs, wake)
	s.done()
}

func (q *Queue) settle(s *step, how Settlement, seqs []queue.Seq, wake *Consumer) {
	q.lock(s)
	defer q.mu.Unlock()
	for _, seq := range seqs {
		switch how {
		case Ack:
			if q.core.Ack(seq, &s.fx) {
				q.tally.acked++
			}
		case Reject:
			q.core.Reject(seq, &s.fx)
		default:
			q.core.Requeue(s.now, seq, true, &s.fx)
			if q.set().core.DeliveryLimit >= 0 {
				q.amend(s, seq) // the count outlives a restart
			}
		}
	}
	if wake != nil && wake.queue == q {
		wake.waiting = false
	}
	q.finish(s, Requeued)
	q.dispatch(s)
	if q.set().limited() {
		q.core.Trim(&s.fx)
	}
	q.finish(s, Lazy)
}
