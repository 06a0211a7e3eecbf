package topology

import (
	"go.uber.org/zap"

	"curfew/broker/internal/delivery"
)

// countSubqueueUse counts the use of q's dead-letter sub-queue as use of q: it is a part of q,
// which cannot be managed by itself (Service Bus: Overview of dead-letter queues). Messages that
// arrive there are not use.
func (q *Queue) countSubqueueUse() {
	if q.Settings().IdleMillis == 0 {
		return
	}
	if sub := q.subqueue(); sub != nil {
		used := sub.Idle.LastUse(q.vh.registry.env.Clock.Now())
		q.Idle.MarkUsed(used)
	}
}

// expireIdle deletes q if it was unused for its x-expires or x-auto-delete-on-idle. It
// does not wait for the disk.
func (q *Queue) expireIdle() bool {
	messages := 0
	_, left, err := q.drop(func() error {
		if !q.Idle.IsOverLocked() {
			return delivery.ErrInUse
		}
		q.expired.Store(true)
		held, retained := q.HeldLocked()
		messages = held + retained
		return nil
	})
	if err != nil {
		return false
	}
	q.vh.sweepSoon()
	settle := func() {
		left.settle()
		if q.durable() {
			q.vh.registry.saveDeletedSoon()
		}
	}
	if left.few() {
		settle()
	} else { // the timers of other queues do not wait for it
		q.vh.registry.run(settle)
	}
	q.vh.registry.log.Info("queue expired: unused for its x-expires or x-auto-delete-on-idle",
		zap.String("vhost", q.vh.guard.name), zap.String("queue", q.Name()), zap.Int("messages", messages))
	return true
}

// Judge deletes q, or begins its period again if a delayed message will go to it (awaited) or it
// has been used since.
func (q *Queue) Judge(awaited bool) {
	q.Idle.EndCheck(awaited)
	q.countSubqueueUse()
	if q.expireIdle() {
		return
	}
	q.Idle.SetTimer()
}
