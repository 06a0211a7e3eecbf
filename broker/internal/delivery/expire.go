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
		q.mu.Lock()
	} else if !q.mu.TryLock() {
		for range refs {
			out = append(out, deadline.Answer{Outcome: deadline.Busy})
		}
		return out
	}
	q.startLocked(s)
	defer q.unlock(s, "expire")
	s.touched += len(refs)
	for _, ref := range refs {
		out = append(out, q.core.Expire(s.Now, queue.Seq(ref.Seq), ref.Deadline, &s.fx))
	}
	q.finishLocked(s, path)
	return out
}
