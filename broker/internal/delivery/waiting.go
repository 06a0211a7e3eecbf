package delivery

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// wakeAtOnce is how many messages end their wait under one lock. They are offered to consumers under the
// same.
const wakeAtOnce = queue.AtOnce / 2

// EndWait ends the wait of a message for another try: it is ready, in its place, or with drop it is
// gone, and not dead-lettered. False: it has left, does not wait, or has another deadline.
func (q *Queue) EndWait(ref deadline.Ref, drop bool) (ok bool) {
	s, seq := q.env.Begin(), queue.Seq(ref.Seq)
	defer s.Done()
	if q.locked(s, "return", func() bool {
		if ok = q.core.WaitsUntil(seq) != 0; !ok {
			return false
		}
		if drop {
			ok = q.core.Remove(seq, ref.Deadline, &s.fx)
		} else {
			ok = q.core.WakeNow(s.Now, seq, ref.Deadline, &s.fx)
			q.amendLocked(s, seq)
		}
		q.finishLocked(s, deadline.Requeued)
		return q.serveLocked(s)
	}) {
		q.serve(s)
	}
	return ok
}
