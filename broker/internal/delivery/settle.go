package delivery

import (
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/queueargs"
	"curfew/broker/queue"
)

// Get takes the next ready message (basic.get) and passes it to fn under the queue's lock; false
// when there is none. It counts as use for x-expires. An exclusive consumer does not prevent it,
// as in RabbitMQ. Errors: 404 if the queue has been deleted, 405 on a quorum queue that serves
// one consumer at a time.
func (q *Queue) Get(noAck bool, fn func(*Delivery)) (bool, error) {
	s := q.env.Begin()
	defer s.Done()
	q.lock(s)
	defer q.mu.Unlock()
	if q.deleted {
		return false, q.notFound()
	}
	if q.Arguments.SingleActive && q.Arguments.Type == queueargs.Quorum {
		return false, amqp.NewException(amqp.ResourceLocked, 0, 0,
			"cannot obtain access to locked %s. basic.get operations are not supported by quorum queues with single active consumer", q.Label())
	}
	q.Idle.renewLocked()
	s.source = Source{q: q, s: s, settle: noAck, mode: modeOf(true, noAck)}
	var d Delivery
	ok := s.source.Next(&d)
	if ok {
		fn(&d)
		if d.Locked {
			q.locks.findLocked(d.Seq).holder = d.LockHolder
		}
	} else {
		q.counters.getEmpty++
	}
	q.finishLocked(s, deadline.Lazy)
	return ok, nil
}

// Settlement is what becomes of unacked messages.
type Settlement uint8

const (
	// Ack: done with.
	Ack Settlement = iota
	// Reject: to the dead-letter exchange, or dropped if there is none.
	Reject
	// Requeue: back to their places, which counts as a failed delivery; those past their
	// deadline expire.
	Requeue
)

// Settle ends the deliveries of seqs, in order; it skips those that are not unacked. c, if not
// nil, is the consumer of this queue that received them, and has credit again.
func (q *Queue) Settle(how Settlement, seqs []queue.Seq, c *Consumer) {
	s := q.env.Begin()
	q.SettleWith(s, how, seqs, c)
	s.Done()
}

// SettleWith is Settle as a part of a transition.
func (q *Queue) SettleWith(s *Transition, how Settlement, seqs []queue.Seq, c *Consumer) {
	q.lock(s)
	defer q.mu.Unlock()
	q.markUsedLocked(s.Now)
	settled := 0
	for _, seq := range seqs {
		if q.settleOneLocked(s, how, seq) {
			settled++
			q.locks.releaseLocked(seq)
		}
	}
	if c != nil && c.queue == q {
		c.waiting = false
		c.unacked -= settled
		q.consumers.chooseActiveLocked()
	}
	q.finishLocked(s, deadline.Requeued)
	q.consumers.dispatchLocked(s)
	if q.Settings().Limited() {
		q.core.Trim(&s.fx)
	}
	q.finishLocked(s, deadline.Lazy)
}

func (q *Queue) settleOneLocked(s *Transition, how Settlement, seq queue.Seq) bool {
	switch how {
	case Ack:
		ok := q.core.Ack(seq, &s.fx)
		if ok {
			q.counters.acked++
		}
		return ok
	case Reject:
		return q.core.Reject(seq, &s.fx)
	}
	ok := q.core.Requeue(s.Now, seq, true, &s.fx)
	if ok && (q.Arguments.Type == queueargs.Quorum || q.Settings().MaxDeliveries > 0) {
		q.amendLocked(s, seq) // the count outlives a restart
	}
	return ok
}
