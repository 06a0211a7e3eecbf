package delivery

import (
	"slices"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/message"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Item is one message on its way into one queue.
type Item struct {
	Message       queue.Message // ExpiresAt: its absolute deadline, 0 none; or when a delayed one is due
	Priority      uint8
	Bound         bool           // it comes by a binding of an exchange other than the default one
	AtLeastOnce   bool           // a dead letter that a full queue may refuse, since its source then keeps it
	Command       bool           // it changes a delayed message (message.CommandOf)
	TTLMillis     int64          // time to live of the message itself; <0: none
	ceilingMillis int64          // of the exchange it came through; <0: none
	Number        int            // of the publish within its batch
	Named         *message.Named // the message's headers, while its targets may name one of them; nil: none does
	Move          int            // index in Transition.Transfers of the transfer that it belongs to; <0: a publish
}

// Read takes from the properties what a queue has to know about the message.
func (it *Item) Read(view *amqp.PropertyView, has message.Marks, body int) (err error) {
	it.Message.Bytes, it.Priority = uint32(body), view.Priority
	if view.DeliveryMode == 2 {
		it.Message.Flags |= queue.Durable
	}
	if has&message.BccMark != 0 {
		it.Message.Flags |= queue.Hidden
	}
	if has&message.ReceiptMark != 0 {
		it.Message.Flags |= queue.Receipt
	}
	if view.Has&amqp.HasExpiration != 0 {
		it.TTLMillis, err = message.ParseExpiration(view.Expiration)
	}
	return err
}

// WouldExpire is the deadline that the item would have if it entered queue q now, through an
// exchange with that ceiling (<0: none). 0: none.
func (it *Item) WouldExpire(q *Queue, ceilingMillis int64) deadline.Instant {
	one := *it
	one.ceilingMillis = ceilingMillis
	now, stamp := q.env.Clock.Read()
	at, _ := one.deadline(q.env, now, stamp, q.Settings())
	return at
}

// deadline is when the item expires in a queue that it enters now. It follows from the queue's
// time to live, the message's own and its absolute deadline, by the queue's precedence, but is
// no later than the ceiling of the exchange that the item came through. 0: never; the current
// instant: it has come. immediate: even so, a consumer may take the item in this transition.
func (it *Item) deadline(env *Env, now, stamp deadline.Instant, settings *policy.Settings) (at deadline.Instant, immediate bool) {
	if settings.Keeps || env.TTLOff {
		return 0, false
	}
	ttl, own := settings.TTLMillis, it.Message.ExpiresAt
	if own != 0 && settings.Precedence == policy.MessageFirst {
		ttl = -1
	}
	ttl = policy.LowerTTL(settings.Precedence.EffectiveTTL(ttl, it.TTLMillis), it.ceilingMillis)
	switch {
	case own != 0 && own <= now:
		return now, false
	case ttl == 0:
		return now, true
	case ttl > 0 && own != 0:
		return min(stamp.AddMillis(deadline.Millis(ttl)), own), false
	case ttl > 0:
		return stamp.AddMillis(deadline.Millis(ttl)), false
	}
	return own, false
}

// Publish enters items in order, then offers what is ready to the consumers. Very many items enter
// in steps.
func (q *Queue) Publish(s *Transition, items []Item) {
	var more bool
	for {
		if items, more = q.publishStep(s, items); len(items) == 0 {
			break
		}
		s.awaitFeed(false)
	}
	if more {
		q.serve(s)
	}
}

// publishStep enters the first of the items, and returns the others. more: there is more to serve.
func (q *Queue) publishStep(s *Transition, items []Item) (rest []Item, more bool) {
	q.lock(s)
	defer q.unlock(s, "publish")
	if q.deleted {
		for i := range items {
			s.Env.Store.Release(store.Pos(items[i].Message.Pos))
			if items[i].AtLeastOnce {
				s.Transfers[items[i].Move].Refused = true
			}
		}
		return nil, false
	}
	settings := q.Settings()
	limited := settings.Limited()
	// What comes by a binding does not count as use, since the queue then corresponds to a subscription of Service Bus. Neither do dead letters
	// that enter a sub-queue.
	if !settings.Keeps && slices.ContainsFunc(items[:min(len(items), queue.AtOnce)], func(it Item) bool { return !it.Bound }) {
		q.lastUsedAt = s.Now
	}
	for s.touched < queue.AtOnce && !s.fx.Full() && len(items) > 0 && !more {
		it := &items[0]
		items = items[1:]
		s.touched++
		if limited && !s.AllOrNone && q.refuseLocked(s, it) {
			continue
		}
		if q.enterLocked(s, it); limited {
			more = q.consumers.dispatchLocked(s) || q.core.Trim(&s.fx)
		}
	}
	if !limited {
		more = q.consumers.dispatchLocked(s)
	}
	// Expires what was past its deadline when it came, and the TTL 0 messages that no
	// consumer took at once.
	for _, seq := range s.instant {
		q.core.Expire(s.Now+1, seq, s.Now, &s.fx)
	}
	s.instant = s.instant[:0]
	q.finishLocked(s, deadline.Lazy)
	q.flow.chargeLocked(s)
	return items, more
}

// enterLocked puts one message at the tail and stamps its deadline.
func (q *Queue) enterLocked(s *Transition, it *Item) {
	m := it.Message
	if !q.Durable {
		m.Flags &^= queue.Durable
	}
	at, immediate := it.deadline(s.Env, s.Now, s.stamp, q.Settings())
	if m.ExpiresAt = at; immediate {
		m.Flags |= queue.Immediate
	}
	q.counters.entered(&m)
	seq := q.core.Publish(m, it.Priority)
	var marked bool
	q.ages, marked = q.ages.note(q.core, seq, s.stamp)
	if s.AllOrNone {
		s.Numbered = append(s.Numbered, Numbered{Publish: it.Number, Seq: seq})
	}
	switch {
	case m.ExpiresAt == 0:
	case m.ExpiresAt <= s.Now:
		s.instant = append(s.instant, seq)
	default:
		s.notifyLocked(deadline.Event{Kind: deadline.Enqueued, Ref: q.refOf(seq, m.ExpiresAt)})
		if s.Paced && q.Settings().DeadLetters {
			s.dying = q.Letters.Lines
		}
	}
	entered := store.Enqueue{Queue: q.ID, Seq: uint64(seq), Pos: store.Pos(m.Pos), ExpiresAt: m.ExpiresAt, Flags: uint8(m.Flags), Durable: m.Flags&queue.Durable != 0}
	if marked || q.enqueued != nil {
		entered.EnqueuedAt = s.stamp
	}
	if q.enqueued != nil {
		q.enqueued.add(seq, s.stamp)
	}
	s.AddEnteredLocked(it, entered)
}

// refuseLocked refuses a publish that would overflow the queue, if its overflow mode says so. A
// dead letter is never refused, unless its source keeps it for another try.
func (q *Queue) refuseLocked(s *Transition, it *Item) bool {
	if it.Move >= 0 && !it.AtLeastOnce {
		return false
	}
	if q.Settings().Core.Overflow == queue.DropHead || !q.Retained.exceedsLocked(q.core, 1, int64(it.Message.Bytes)) {
		return false
	}
	if it.AtLeastOnce {
		s.Transfers[it.Move].Refused = true
		s.Env.Store.Release(store.Pos(it.Message.Pos))
		return true
	}
	s.Refused = append(s.Refused, it.Number)
	s.Env.Counters.Refused.Add(1)
	if q.Settings().Core.Overflow == queue.RejectPublishDLX && q.Settings().DeadLetters {
		q.finishLocked(s, deadline.Lazy) // what left before it died before it
		q.Letters.PostLocked(s, &Letter{Settled: queue.Settled{Message: it.Message, Reason: queue.MaxLength}, Settings: q.Settings(), At: s.Now})
	} else {
		s.Env.Store.Release(store.Pos(it.Message.Pos))
	}
	return true
}

// Refuses reports whether the queue would refuse any of the items if they came together.
func (q *Queue) Refuses(items ...Item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	bytes := int64(0)
	for i := range items {
		bytes += int64(items[i].Message.Bytes)
	}
	return q.deleted || q.Settings().Core.Overflow != queue.DropHead && q.Retained.exceedsLocked(q.core, len(items), bytes)
}

// AtLimit reports whether one more message would make the queue refuse or drop one.
func (q *Queue) AtLimit(bytes uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.Retained.exceedsLocked(q.core, 1, int64(bytes))
}
