package delivery

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Reschedule gives a message another deadline; 0: none. If that deadline has come the message
// expires at once, and with drop it is not dead-lettered. The outcomes are those of
// Broker.Reschedule; the returned ref names the message from now on.
func (q *Queue) Reschedule(s *Transition, ref deadline.Ref, to deadline.Instant, drop bool) (deadline.Outcome, deadline.Ref) {
	q.lock(s)
	defer q.unlock(s, "reschedule")
	if to != 0 {
		to = max(to, s.Now)
	}
	seq := queue.Seq(ref.Seq)
	outcome, tracked := q.core.Reschedule(s.Now, seq, ref.Deadline, to, &s.fx)
	switch outcome {
	case queue.Gone:
		return deadline.Gone, ref
	case queue.Fired:
		s.dropping = drop
		q.finishLocked(s, deadline.Manual)
		return deadline.Expired, ref
	}
	if tracked {
		s.notifyLocked(deadline.Event{Kind: deadline.Left, Ref: ref})
	}
	ref.Deadline = to
	if to != 0 {
		s.notifyLocked(deadline.Event{Kind: deadline.Changed, Ref: ref})
	}
	q.amendLocked(s, seq)
	q.finishLocked(s, deadline.Manual)
	if outcome == queue.Held {
		return deadline.Held, ref
	}
	return deadline.Rescheduled, ref
}
