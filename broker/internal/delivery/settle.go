package delivery

import (
	"slices"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Get takes the next ready message (basic.get) and passes it to fn under the queue's lock; false
// when there is none. It counts as use for x-expires. An exclusive consumer does not prevent it,
// as in RabbitMQ. Errors: 404 if the queue has been deleted, 405 on a quorum queue that serves
// one consumer at a time.
func (q *Queue) Get(noAck bool, fn func(*Delivery)) (ok bool, err error) {
	s := q.env.Begin()
	defer s.Done()
	for more := true; more; {
		more = q.locked(s, "get", func() bool {
			if q.deleted {
				err = NoQueue(q.vhost, q.Name)
				return false
			}
			if q.Arguments.SingleActive && q.Arguments.Type == policy.Quorum {
				err = amqp.NewException(amqp.ResourceLocked, 0, 0,
					"cannot obtain access to locked %s. basic.get operations are not supported by quorum queues with single active consumer", q.Label())
				return false
			}
			q.Idle.renewLocked()
			s.source = Source{q: q, s: s, settle: noAck, get: true}
			var d Delivery
			ok = s.source.Next(&d)
			again := !ok && s.fx.Full() // very many expired messages were in front
			if ok {
				fn(&d)
				if k, ok := q.Locks.table.find(d.Seq); ok {
					k.holder = d.LockHolder
					q.Locks.table.of[d.Seq] = k
				}
			} else if !again {
				q.counters.GetEmpty++
			}
			q.finishLocked(s, deadline.Lazy)
			return again
		})
	}
	return ok, err
}

// Receive takes the ready message seq, wherever in the queue it is, and passes it to fn under the queue's
// lock (Service Bus: receive a deferred message). Nobody else is asked when its lock lapses. False: it is
// gone, held or expired.
func (q *Queue) Receive(seq queue.Seq, noAck bool, fn func(*Delivery)) bool {
	s := q.env.Begin()
	defer s.Done()
	q.lock(s)
	defer q.unlock(s, "receive")
	m, failed, ok := q.core.Find(seq)
	if !ok || m.ExpiresAt != 0 && m.ExpiresAt <= s.Now || !q.core.Hold(seq, m.ExpiresAt) {
		return false
	}
	q.lastUsedAt = s.Now
	s.source = Source{q: q, s: s, settle: noAck, get: true}
	var d Delivery
	s.source.hand(&queue.Delivery{Seq: seq, Message: m, Redelivered: m.Flags&queue.Redelivered != 0, Deliveries: failed}, &d)
	fn(&d)
	q.finishLocked(s, deadline.Lazy)
	return true
}

// Settlement is what becomes of unacked messages.
type Settlement uint8

const (
	// Ack: done with.
	Ack Settlement = iota
	// Reject: to the dead-letter exchange, or dropped if there is none.
	Reject
	// Requeue: back to their places, or to wait there for another try (queue.Options.Retry), because
	// their consumer failed; those past their deadline expire. It counts as a failed delivery.
	Requeue
	// Return is Requeue for messages that their consumer gave back. It counts, too.
	Return
	// Release is Return, but does not count as a failed delivery.
	Release
	// PutBack is Return for messages that somebody only looked at: they are ready at once. In a queue whose
	// messages wait (queue.Options.Retry) that is no try, and does not count.
	PutBack
)

// Rejection is what a consumer says about a message that it rejects (Service Bus: dead-letter reason).
// It is written into the headers of the dead letter.
type Rejection struct {
	Reason, Description string
	Properties          amqp.Table // further headers
	Modified            bool       // there are no others: the reason is the broker's (AMQP 1.0: modified)
}

// Settle ends the deliveries of seqs, in order, which it may sort; it skips those that are not unacked. c, if not
// nil, is the consumer of this queue that received them, and has credit again.
func (q *Queue) Settle(how Settlement, seqs []queue.Seq, c *Consumer) { q.SettleFor(how, seqs, c, nil) }

// SettleFor is Settle with what the consumer says about messages that it rejects; nil: nothing. A dead letter that
// is to be dead-lettered for the consumer's own reason stays where it is (Service Bus: Overview of dead-letter queues).
func (q *Queue) SettleFor(how Settlement, seqs []queue.Seq, c *Consumer, why *Rejection) {
	if how == Reject && why != nil && !why.Modified && q.Settings().Keeps {
		how = Requeue
	}
	s := q.env.Begin()
	s.why = why
	q.SettleWith(s, how, seqs, c)
	s.Done()
}

// SettleWith is Settle as a part of a transition. Very many are settled in steps, and then what is
// ready is offered: so those that come back are all in their places before one is delivered again.
func (q *Queue) SettleWith(s *Transition, how Settlement, seqs []queue.Seq, c *Consumer) {
	if how >= Requeue && len(seqs) > queue.AtOnce { // whoever takes one meanwhile gets the first
		slices.Sort(seqs)
	}
	for ; len(seqs) > queue.AtOnce; seqs = seqs[queue.AtOnce:] {
		q.settleStep(s, how, seqs[:queue.AtOnce], c, false)
		q.env.AwaitFeed()
	}
	if q.settleStep(s, how, seqs, c, true) {
		q.serve(s)
	}
}

// settleStep settles some of the deliveries. last: there are no others, and the queue is served.
func (q *Queue) settleStep(s *Transition, how Settlement, seqs []queue.Seq, c *Consumer, last bool) (more bool) {
	q.lock(s)
	defer q.unlock(s, "settle")
	q.lastUsedAt = s.Now
	s.touched += len(seqs)
	settled := 0
	for _, seq := range seqs {
		if q.settleOneLocked(s, how, seq) {
			settled++
			q.Locks.table.release(seq)
		}
	}
	if c != nil && c.queue == q {
		c.unacked -= settled
	}
	q.finishLocked(s, deadline.Requeued)
	if !last {
		return true
	}
	if c != nil && c.queue == q {
		q.consumers.waitLocked(c, false)
		q.consumers.chooseActiveLocked()
	}
	return q.serveLocked(s)
}

func (q *Queue) settleOneLocked(s *Transition, how Settlement, seq queue.Seq) bool {
	switch how {
	case Ack:
		ok := q.core.Settle(seq, queue.Acked, &s.fx)
		if ok {
			q.counters.Acked++
		}
		return ok
	case Reject:
		return q.core.Settle(seq, queue.Rejected, &s.fx)
	}
	settings := q.Settings()
	retries := settings.Core.Retry != queue.NoRetry
	counted := how != Release && !(how == PutBack && retries)
	var ok bool
	if how == PutBack {
		ok = q.core.Requeue(s.Now, seq, counted, &s.fx)
	} else {
		ok = q.core.Return(s.Now, s.stamp, seq, counted, how == Requeue, &s.fx)
	}
	until := q.core.WaitsUntil(seq)
	kept := counted && (q.Arguments.Type == policy.Quorum || settings.MaxDeliveries > 0 || retries)
	if ok && (kept || until != 0) {
		q.amendLocked(s, seq) // the count and the wait outlive a restart
	}
	if until != 0 {
		q.env.Timers.Add(q, until)
	}
	return ok
}
