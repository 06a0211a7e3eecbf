package delivery

import (
	"slices"

	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Reschedule gives messages another deadline; 0: none. If that deadline has come they
// expire at once, and with drop they are not dead-lettered. Under the lock it calls answer for each, in
// order: the outcomes are those of Broker.Reschedule; the ref names the message from now on.
func (q *Queue) Reschedule(s *Transition, refs []deadline.Ref, to deadline.Instant, drop bool, answer func(deadline.Outcome, deadline.Ref)) {
	for some := range slices.Chunk(refs, queue.AtOnce) {
		q.locked(s, "reschedule", func() bool {
			s.touched, s.dropping = len(some), drop
			if to != 0 {
				to = max(to, s.Now)
			}
			for _, ref := range some {
				outcome, tracked := q.core.Reschedule(s.Now, queue.Seq(ref.Seq), ref.Deadline, to, &s.fx)
				if outcome == deadline.Rescheduled || outcome == deadline.Held {
					if tracked {
						s.notifyLocked(deadline.Event{Kind: deadline.Left, Ref: ref})
					}
					ref.Deadline = to
					if to != 0 {
						s.notifyLocked(deadline.Event{Kind: deadline.Changed, Ref: ref})
					}
					q.amendLocked(s, queue.Seq(ref.Seq))
				}
				answer(outcome, ref)
			}
			q.finishLocked(s, deadline.Manual)
			return true
		})
	}
}
