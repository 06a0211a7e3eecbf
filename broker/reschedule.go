package broker

import (
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Reschedule gives the message that ref names another deadline: deadline in Unix µs,
// 0 for none (ref.Deadline is 0, too, of a message that had none). The message keeps
// its place. Outcomes:
//
//	Rescheduled  the returned ref names it from now on; the old one names nothing
//	Expired      deadline has come: it expired there and then, see FireNow
//	Held         deadline has come, but a consumer holds it: it will expire if it comes
//	             back; the returned ref names it
//	Gone         it has left its queue, or has another deadline than ref says; or no
//	             message expires (Options.TTLOff)
//
// An unacked message is rescheduled like one that waits. The monitor hears of the
// change by the feed. It is journaled for a durable message, and as safe as the
// store's mode promises when a Commit that follows has called back; until then a crash
// may bring the old deadline back. To be called without any lock; safe for concurrent
// use: of two who name the same ref, one is told Gone.
func (b *Broker) Reschedule(ref MessageRef, deadline int64) (ExpireOutcome, MessageRef) {
	return b.reschedule(ref, deadline, false)
}

// FireNow makes the deadline of the message that ref names come now, whatever it was:
// a message that waits leaves its queue at once, dead-lettered as expired if the queue
// has a dead-letter exchange and drop is false, else dropped. It is told with Path
// Manual (WatchExpiries), and dead letters carry the reason "expired". The outcome is
// Expired, Held (it will expire, and dead-letter, if it comes back) or Gone. Durable
// and concurrent as Reschedule is.
func (b *Broker) FireNow(ref MessageRef, drop bool) ExpireOutcome {
	outcome, _ := b.reschedule(ref, 1, drop)
	return outcome
}

func (b *Broker) reschedule(ref MessageRef, deadline int64, drop bool) (ExpireOutcome, MessageRef) {
	q := b.queueByID(ref.Queue)
	if q == nil || q.delays != nil || b.opts.TTLOff {
		return Gone, ref
	}
	s := b.step()
	defer s.done()
	return q.reschedule(s, ref, deadline, drop)
}

func (q *Queue) reschedule(s *step, ref MessageRef, deadline int64, drop bool) (ExpireOutcome, MessageRef) {
	q.lock(s)
	defer q.mu.Unlock()
	if deadline != 0 {
		deadline = max(deadline, s.now)
	}
	seq := queue.Seq(ref.Seq)
	outcome, tracked := q.core.Reschedule(s.now, seq, ref.Deadline, deadline, &s.fx)
	switch outcome {
	case queue.Gone:
		return Gone, ref
	case queue.Fired:
		s.dropping = drop
		q.finish(s, Manual)
		return Expired, ref
	}
	if tracked {
		s.tell(DeadlineEvent{Kind: DeadlineSettled, Ref: ref})
	}
	ref.Deadline = deadline
	if deadline != 0 {
		s.tell(DeadlineEvent{Kind: DeadlineRescheduled, Ref: ref})
	}
	q.amend(s, seq)
	q.finish(s, Manual)
	if outcome == queue.Held {
		return Held, ref
	}
	return Rescheduled, ref
}

// amend has the present terms of a message journaled with the step's records.
func (q *Queue) amend(s *step, seq queue.Seq) {
	m, terms, ok := q.terms(seq)
	if ok && m.Flags&queue.Durable != 0 {
		s.amended = append(s.amended, store.Amend{Queue: q.id, Seq: uint64(seq), Pos: store.Pos(m.Pos), Durable: true, Terms: terms})
	}
}

// terms are what the journal has to know of a message besides where it stands.
func (q *Queue) terms(seq queue.Seq) (queue.Message, store.Terms, bool) {
	m, deliveries, ok := q.core.Find(seq)
	return m, store.Terms{ExpiresAt: m.ExpiresAt, Deliveries: deliveries, Flags: uint8(m.Flags)}, ok
}
