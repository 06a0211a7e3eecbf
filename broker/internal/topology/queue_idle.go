package topology

import (
	"slices"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/policy"
)

// countUseOfParts counts the use of q's dead-letter sub-queue, and of its deferred messages, as use of q (Service Bus:
// Overview of dead-letter queues). Messages that arrive in the sub-queue are not use.
func (q *Queue) countUseOfParts() {
	if q.Settings().IdleMillis == 0 {
		return
	}
	q.vh.guard.mu.RLock()
	used := q.useOfPartsLocked(q.vh.registry.env.Clock.Now())
	q.vh.guard.mu.RUnlock()
	q.Messages.Idle.MarkUsed(used)
}

// useOfPartsLocked is when a part of q was last used; 0: never, or there is none. Called with vh.mu held.
func (q *Queue) useOfPartsLocked(now deadline.Instant) (last deadline.Instant) {
	for _, suffix := range [...]string{policy.SubqueueSuffix, policy.DeferredSuffix, policy.SubqueueSuffix + policy.DeferredSuffix} {
		if part := q.vh.Queues.queues[q.Name+suffix]; part != nil {
			last = max(last, part.Messages.Idle.LastUse(now))
		}
	}
	return last
}

// expireIdle deletes q if it was unused for its x-expires or x-auto-delete-on-idle. It
// does not wait for the disk.
func (q *Queue) expireIdle() bool {
	messages := 0
	_, left, err := q.drop(func(held delivery.Holding) error {
		if !q.Messages.Idle.IsOverLocked() {
			return delivery.ErrInUse
		}
		q.marks.Or(expired)
		messages = held.Messages + held.Retained
		return nil
	})
	if err != nil {
		return false
	}
	q.vh.sweepSoon()
	settle := func() {
		left.settle()
		if q.Durable {
			q.vh.registry.saveDeletedSoon()
		}
	}
	if slices.ContainsFunc(left, func(x leftover) bool { return !x.held.Few() }) { // the timers of other queues do not wait for it
		q.vh.registry.run(settle)
	} else {
		settle()
	}
	q.vh.registry.log.Info("queue expired: unused for its x-expires or x-auto-delete-on-idle",
		zap.String("vhost", q.vh.guard.name), zap.String("queue", q.Name), zap.Int("messages", messages))
	return true
}

// Judge deletes q, or begins its period again if a delayed message will go to it (awaited) or it
// has been used since.
func (q *Queue) Judge(awaited bool) {
	q.Messages.Idle.EndCheck(awaited)
	q.countUseOfParts()
	if q.expireIdle() {
		return
	}
	q.Messages.Idle.SetTimer()
}
