package delivery

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// ExpireAtOnce is the most messages of one queue that expire under one lock, so that publishers
// and consumers get their turn when many expire at once.
const ExpireAtOnce = 256

// Expire expires those of the messages whose deadline has come, and appends an answer for each
// ref.
func (q *Queue) Expire(s *Transition, refs []deadline.Ref, path deadline.Path, out []deadline.Answer) []deadline.Answer {
	q.lock(s)
	defer q.mu.Unlock()
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
	case queue.NotDue:
		return deadline.Answer{Outcome: deadline.NotDue, At: dueAt}
	}
	return deadline.Answer{Outcome: deadline.Gone}
}
