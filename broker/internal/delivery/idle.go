package delivery

import "curfew/broker/deadline"

// Idle tracks how long a queue has not been used, and when it is deleted for that reason.
//
// x-expires (RabbitMQ: Queue TTL) counts from a declare, a basic.get or the end of the last
// consumer. x-auto-delete-on-idle (Service Bus: AutoDeleteOnIdle) counts from any operation,
// including publishing, settling and browsing (messages.lastUsedAt), but not from what a binding brings: a queue that is
// bound to a topic corresponds to a subscription, which sends to the topic do not keep alive. A queue with consumers
// is in use.
type Idle struct {
	q         *Queue
	expiresAt deadline.Instant // x-expires: when the queue expires unless it is used; 0 while it has consumers
}

// Renew starts the period of x-expires again, as a passive or repeated declare does. False: the queue is
// deleted.
func (i *Idle) Renew() bool {
	i.q.mu.Lock()
	defer i.q.mu.Unlock()
	i.renewLocked()
	return !i.q.deleted
}

// renewLocked notes a use that counts for x-expires: the full period starts again, or does not
// run at all while the queue has consumers.
func (i *Idle) renewLocked() {
	q := i.q
	i.expiresAt = 0
	if q.deleted || q.consumers.count > 0 {
		return
	}
	stamp := q.env.Clock.Stamp()
	q.lastUsedAt = stamp
	if expires := q.Settings().ExpiresMillis; expires != 0 {
		i.expiresAt = stamp.AddMillis(deadline.Millis(expires))
	}
	i.setTimerLocked()
}

// settingsChangedLocked notes that a policy changed the queue's settings, which counts as use for
// x-auto-delete-on-idle.
func (i *Idle) settingsChangedLocked() {
	i.q.lastUsedAt = i.q.env.Clock.Stamp()
	i.setTimerLocked()
}

// deadlineLocked is when the queue is deleted unless it is used before then; 0: never, or its use
// is being checked.
func (i *Idle) deadlineLocked() deadline.Instant {
	q, at := i.q, i.expiresAt
	if idle := q.Settings().IdleMillis; idle != 0 && q.consumers.count == 0 && !i.q.checkingIdle {
		if end := q.lastUsedAt.AddMillis(deadline.Millis(idle)); at == 0 || end < at {
			at = end
		}
	}
	return at
}

// IsOverLocked reports whether the queue has been unused for its x-expires or x-auto-delete-on-idle.
func (i *Idle) IsOverLocked() bool {
	at := i.deadlineLocked()
	return at != 0 && at <= i.q.env.Clock.Now()
}

func (i *Idle) setTimerLocked() {
	if at := i.deadlineLocked(); at != 0 && !i.q.deleted {
		i.q.env.Timers.Add(i.q, at)
	}
}

// SetTimer sets the timer to when the queue is deleted unless it is used.
func (i *Idle) SetTimer() {
	i.q.mu.Lock()
	defer i.q.mu.Unlock()
	i.setTimerLocked()
}

// LastUse is when the queue was last used, by the rules of x-auto-delete-on-idle: now, while it
// has consumers.
func (i *Idle) LastUse(now deadline.Instant) deadline.Instant {
	i.q.mu.Lock()
	defer i.q.mu.Unlock()
	if i.q.consumers.count > 0 {
		return now
	}
	return i.q.lastUsedAt
}

// MarkUsed notes that the queue was used at an instant, which may be in the past.
func (i *Idle) MarkUsed(at deadline.Instant) {
	i.q.mu.Lock()
	defer i.q.mu.Unlock()
	i.q.lastUsedAt = max(i.q.lastUsedAt, at)
}

// BeginCheck reports whether x-auto-delete-on-idle, and not x-expires, has run out. If so, the
// caller finds out whether a delayed message will go to the queue, and calls EndCheck.
func (i *Idle) BeginCheck() bool {
	i.q.mu.Lock()
	defer i.q.mu.Unlock()
	now := i.q.env.Clock.Now()
	if at := i.deadlineLocked(); i.q.deleted || at == 0 || at > now || i.expiresAt != 0 && i.expiresAt <= now {
		return false
	}
	i.q.checkingIdle = true
	return true
}

// EndCheck ends a check. awaited: a delayed message will go to the queue, which counts as use.
func (i *Idle) EndCheck(awaited bool) {
	i.q.mu.Lock()
	defer i.q.mu.Unlock()
	i.q.checkingIdle = false
	if awaited {
		i.q.lastUsedAt = i.q.env.Clock.Now()
	}
}
