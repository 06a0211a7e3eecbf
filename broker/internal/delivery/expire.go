package delivery

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Expire expires those of the messages whose deadline has come, and appends an answer for each
// ref, of which there are at most queue.AtOnce. Unless wait is set it does not wait for the queue's
// lock: while the queue is in use the answers are Busy, and nothing has happened.
func (q *Queue) Expire(s *Transition, refs []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer {
	if wait {
		q.lock(s)
	} else if !q.tryLock(s) {
		for range refs {
			out = append(out, deadline.Answer{Outcome: deadline.Busy})
		}
		return out
	}
	defer q.unlock(s, "expire")
	s.touched += len(refs)
	for _, ref := range refs {
		outcome, dueAt := q.core.Expire(s.Now, queue.Seq(ref.Seq), ref.Deadline, &s.fx)
		out = append(out, s.answer(outcome, dueAt))
	}
	q.finishLocked(s, path)
	return out
}

func (s *Transition) answer(outcome queue.Outcome, dueAt deadline.Instant) deadline.Answer {
	switch outcome {
	case queue.Fired:
		return deadline.Answer{Outcome: deadline.Expired, At: s.Now}
	case queue.Held:
		return deadline.Answer{Outcome: deadline.Held}
	case queue.Rescheduled:
		return deadline.Answer{Outcome: deadline.Rescheduled}
	case queue.NotDue:
		return deadline.Answer{Outcome: deadline.NotDue, At: dueAt}
	}
	return deadline.Answer{Outcome: deadline.Gone}
}
