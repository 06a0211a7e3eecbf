package delivery

import "curfew/broker/memory"

// shrinkLaterLocked is called after messages have left. It adds an empty queue to the shrinker.
func (q *Queue) shrinkLaterLocked() {
	if q.core.Len() > 0 || q.shrinkPending {
		return
	}
	q.shrinkPending = true
	q.env.Shrinker.Add(q)
}

// ShrinkIfIdle releases the queue's unused memory unless the queue was used recently, and reports
// whether it did.
func (q *Queue) ShrinkIfIdle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shrinkPending = false
	switch {
	case q.deleted || q.core.Len() > 0: // it is added again once it is empty
	case q.env.Clock.Now().Sub(q.lastActiveAt) < memory.ShrinkAfter:
		q.shrinkLaterLocked()
	default:
		q.core.Shrink()
		q.Locks.shrinkLocked()
		q.flow.endLocked()
		return true
	}
	return false
}
