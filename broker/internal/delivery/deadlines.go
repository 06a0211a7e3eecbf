package delivery

import (
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/message"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// PageSize is how many entries of a queue are read under one lock.
const PageSize = 1024

// EachDue calls fn with the deadline of each message in the queue that has one, in the
// order of delivery. No lock is held during the call. Messages that enter or leave during the
// walk may be missing.
func (q *Queue) EachDue(fn func(deadline.Ref)) {
	page := make([]deadline.Ref, 0, PageSize)
	for from, more := queue.Seq(0), true; more; {
		page, from, more = q.Deadlines(from, page[:0], false)
		for _, ref := range page {
			fn(ref)
		}
	}
}

// pageLocked calls fn with the messages of one page, from a sequence number on, and returns
// where the next page begins. After a purge that is not finished, a page is empty.
func (q *Queue) pageLocked(from queue.Seq, fn func(queue.Seq, queue.Message)) (next queue.Seq, more bool) {
	if q.core.Sweeping() { // only then are all messages seen
		s := q.env.Begin()
		s.ReadClock()
		q.core.Sweep(&s.fx)
		q.finishLocked(s, deadline.Lazy)
		s.recycle()
		return from, true
	}
	seen := 0
	q.core.Each(from, func(seq queue.Seq, m queue.Message, _ queue.State) bool {
		if seen == PageSize {
			next, more = seq, true
			return false
		}
		seen++
		fn(seq, m)
		return true
	})
	return next, more
}

// Track appends to kept the refs whose messages are still queued. The feed will report when they
// leave.
func (q *messages) Track(refs, kept []deadline.Ref) []deadline.Ref {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, ref := range refs {
		if q.core.Track(queue.Seq(ref.Seq), ref.Deadline) {
			kept = append(kept, ref)
		}
	}
	return kept
}

// Deadlines reads a page of the queue's deadlines from a sequence number on. track: it tracks them.
func (q *Queue) Deadlines(from queue.Seq, page []deadline.Ref, track bool) (_ []deadline.Ref, next queue.Seq, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	next, more = q.pageLocked(from, func(seq queue.Seq, m queue.Message) {
		if m.ExpiresAt != 0 {
			page = append(page, q.refOf(seq, m.ExpiresAt))
		}
	})
	for i := 0; track && i < len(page); i++ {
		q.core.Track(queue.Seq(page[i].Seq), page[i].Deadline)
	}
	return page, next, more
}

// LaterThan reads a page of the messages that have no deadline, or one later than to: the
// deadline that a time to live gives, counted from now. If a message's own deadline takes
// precedence, only messages without one are read.
func (q *Queue) LaterThan(from queue.Seq, page []deadline.Ref, ttlMillis int64, precedence policy.Precedence) (_ []deadline.Ref, to deadline.Instant, next queue.Seq, more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	to = q.env.Clock.Stamp().AddMillis(deadline.Millis(ttlMillis))
	next, more = q.pageLocked(from, func(seq queue.Seq, m queue.Message) {
		if m.ExpiresAt == 0 || m.ExpiresAt > to && precedence != policy.MessageFirst {
			page = append(page, q.refOf(seq, m.ExpiresAt))
		}
	})
	return page, to, next, more
}

// TimeToLive is how long a message lives, by its own expiration and the queue's current time to
// live. False: it is gone, or has neither.
func (q *messages) TimeToLive(ref deadline.Ref) (_ deadline.Millis, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m, _, ok := q.core.Find(queue.Seq(ref.Seq))
	if !ok || m.ExpiresAt != ref.Deadline {
		return 0, false
	}
	own := int64(-1)
	view, err := amqp.ViewProperties(q.env.Store.View(store.Pos(m.Pos)).Properties)
	if err == nil && view.Has&amqp.HasExpiration != 0 {
		if own, err = message.ParseExpiration(view.Expiration); err != nil {
			own = -1
		}
	}
	settings := q.Settings()
	ttl := settings.Precedence.EffectiveTTL(settings.TTLMillis, own)
	return deadline.Millis(ttl), ttl >= 0
}
