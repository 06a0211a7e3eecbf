package broker

import (
	"curfew/broker/queue"
)

// Due is a queued message's deadline.
type Due struct {
	Ref   MessageRef
	State queue.State
}

// EachDue calls fn with the deadline of each message in the queue that has one, in the
// order of delivery. No lock is held meanwhile, and none for long: what comes or goes
// may be missing.
func (q *Queue) EachDue(fn func(Due)) {
	page := make([]Due, 0, deadlinesPage)
	for from, more := queue.Seq(0), true; more; {
		page, from, more = q.dues(from, page[:0])
		for _, d := range page {
			fn(d)
		}
	}
}

func (q *Queue) dues(from queue.Seq, page []Due) (_ []Due, next queue.Seq, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	seen := 0
	q.core.Each(from, func(seq queue.Seq, m queue.Message, state queue.State) bool {
		if seen == deadlinesPage {
			next, more = seq, true
			return false
		}
		if seen++; m.ExpiresAt != 0 {
			page = append(page, Due{q.ref(seq, m.ExpiresAt), state})
		}
		return true
	})
	return page, next, more
}

// Look copies one message as Browse does, with bodyBytes of its body (<0 all); false if
// it is gone. Nothing is marked.
func (q *Queue) Look(seq queue.Seq, bodyBytes int) (x Browsed, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := browser{q: q, want: Browse{BodyBytes: bodyBytes}, matched: 1}
	q.core.Each(seq, func(s queue.Seq, m queue.Message, state queue.State) bool {
		if ok = s == seq; ok {
			x = at.copy(s, m, state, q.vh.b.Now())
		}
		return false
	})
	return x, ok
}
