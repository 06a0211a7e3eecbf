package broker

import (
	"context"
	"slices"

	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/queue"
)

// Expires reports whether messages expire: false with Options.TTLOff.
func (b *Broker) Expires() bool { return !b.opts.TTLOff }

// Deadlines is the view of a broker that a monitor works with: it names
// the waiting deadlines, expires what is due, and reports what expired. Safe for concurrent
// use.
type Deadlines struct {
	b       *Broker
	*clocks // those by which deadlines are stamped
}

// Deadlines is the broker as a monitor sees it.
func (b *Broker) Deadlines() Deadlines { return Deadlines{b, &b.clocks} }

// Events waits for events of messages with deadlines and moves them into buf, those of one
// message in order. lagged says that events were lost since the last call; Snapshot then
// gives the present state. The first call (or the first of Snapshot) subscribes; there is
// one subscriber. The error is that of ctx.
func (d Deadlines) Events(ctx context.Context, buf []deadline.Event) (n int, lagged bool, err error) {
	f := &d.b.env.Feed
	for {
		if n, lagged = f.Take(buf); n > 0 || lagged {
			return n, lagged, nil
		}
		select {
		case <-f.Signal:
		case <-ctx.Done():
			return 0, false, ctx.Err()
		}
	}
}

// Expiries is the stream on which every expiry is reported once.
func (d Deadlines) Expiries() *deadline.Stream { return d.b.env.Expiries }

// Expire removes the named messages whose deadline has come, wherever they are in their
// queues: they are dead-lettered if the queue has a dead-letter exchange, otherwise dropped. It appends
// one answer for each ref, in order: Expired, Gone, Held or NotDue. It may be repeated: a
// message expires once. Refs of one queue are best given together. path says who asks:
// Eager, Index or Stalled. It does not wait until dead letters have arrived; Expiries
// reports that. If a queue is in use by somebody else, it waits for its turn, or, without wait,
// answers Busy for the messages of that queue.
func (d Deadlines) Expire(refs []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer {
	s := d.b.env.Hurry()
	var busy []uint64 // later refs of these may not come before the first
	d.eachQueue(refs, func(q *Queue, id uint64, some []deadline.Ref) {
		all := deadline.Answer{Outcome: deadline.Gone}
		if slices.Contains(busy, id) {
			q, all.Outcome = nil, deadline.Busy
		}
		if q == nil {
			for range some {
				out = append(out, all)
			}
			return
		}
		if out = q.Messages.Expire(s, some, path, wait, out); out[len(out)-1].Outcome == deadline.Busy {
			busy = append(busy, id)
		}
	})
	s.Done()
	return out
}

// eachQueue calls fn with refs of one queue at a time, queue.AtOnce at most; q is nil if it is gone.
func (d Deadlines) eachQueue(refs []deadline.Ref, fn func(q *Queue, id uint64, some []deadline.Ref)) {
	for len(refs) > 0 {
		n, id := 1, refs[0].Queue
		for n < queue.AtOnce && n < len(refs) && refs[n].Queue == id {
			n++
		}
		fn(d.b.registry.ByID(id), id, refs[:n])
		refs = refs[n:]
	}
}

// ExpireOverdue expires every message whose deadline has come, and returns how many. A broker without a monitor calls it after recovery, before
// clients connect: what came due while the process was down is gone from the start, and what comes due later waits for a delivery or a get.
func (d Deadlines) ExpireOverdue() (n int) {
	now, refs, answers := d.b.Now(), make([]deadline.Ref, 0, queue.AtOnce), []deadline.Answer(nil)
	flush := func() {
		answers = d.Expire(refs, deadline.Lazy, true, answers[:0])
		for _, a := range answers {
			if a.Outcome == deadline.Expired {
				n++
			}
		}
		refs = refs[:0]
	}
	for _, q := range d.b.registry.Queues() {
		q.Messages.EachDue(func(ref deadline.Ref) {
			if ref.Deadline > now {
				return
			}
			if refs = append(refs, ref); len(refs) == cap(refs) {
				flush()
			}
		})
	}
	flush()
	return n
}

// Track keeps, in place and order, the refs whose messages are still queued. Events reports
// when these leave (deadline.Left).
func (d Deadlines) Track(refs []deadline.Ref) []deadline.Ref {
	kept := refs[:0]
	d.eachQueue(refs, func(q *Queue, _ uint64, some []deadline.Ref) {
		if q != nil {
			kept = q.Messages.Track(some, kept)
		}
	})
	return kept
}

// Snapshot calls fn with every queued message that has a deadline, in pages that are valid
// during the call. Events reports when these leave. Messages that come or go while Snapshot
// runs may be missing or left over: Events has them. The error is fn's or ctx's.
func (d Deadlines) Snapshot(ctx context.Context, fn func([]deadline.Ref) error) error {
	d.b.env.Feed.On.Store(true)
	page := make([]deadline.Ref, 0, delivery.PageSize)
	for _, q := range d.b.registry.Queues() {
		for from, more := queue.Seq(0), true; more; {
			page, from, more = q.Messages.Deadlines(from, page[:0], true)
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(page) == 0 {
				continue
			}
			if err := fn(page); err != nil {
				return err
			}
		}
	}
	return nil
}

// QueueName names a queue by its number; false when it is gone.
func (d Deadlines) QueueName(id uint64) (vhost, name string, ok bool) {
	if q := d.b.registry.ByID(id); q != nil {
		return q.VHost().Name(), q.Name, true
	}
	return "", "", false
}

// Survey calls fn with the state of each queue and a sample of its messages: at most
// 2*samples of them, and all where there are no more than samples. What fn is given is
// valid during the call. It costs a step for each sample and each 128 messages. No queue is
// locked for long, so a large queue may change in between.
func (d Deadlines) Survey(samples int, fn func(*deadline.Survey)) {
	var s deadline.Survey
	for _, q := range d.b.registry.Queues() {
		q.Messages.Survey(samples, &s)
		fn(&s)
	}
}

// TimeToLive is how long the message lived, or is to live, from when it entered its queue,
// by its own expiration and the queue's present time to live. False: the message is gone, or
// neither sets one.
func (d Deadlines) TimeToLive(ref deadline.Ref) (ttl deadline.Millis, ok bool) {
	q := d.b.registry.ByID(ref.Queue)
	if q == nil {
		return 0, false
	}
	return q.Messages.TimeToLive(ref)
}

// Reschedule gives the message that ref names another deadline, to; 0 means none.
// ref.Deadline is also 0 for a message that has none. The message keeps its place.
// Outcomes:
//
//	Rescheduled  the returned ref names it from now on; the old one names nothing
//	Expired      it has come: the message expired there and then, see FireNow
//	Held         it has come, but a consumer holds the message: it will expire if it comes
//	             back; the returned ref names it
//	Gone         it has left its queue, or has another deadline than ref says; or no
//	             message expires (Options.TTLOff)
//
// An unacked message is rescheduled like one that waits. The monitor learns of the
// change from the feed. For a durable message it is journaled, and as safe as the store's
// mode promises when a Commit that follows has called back; until then a crash may bring
// the old deadline back. It must be called with no lock held, and is safe for concurrent
// use: of two callers with the same ref, one gets Gone.
func (b *Broker) Reschedule(ref deadline.Ref, to deadline.Instant) (deadline.Outcome, deadline.Ref) {
	return b.reschedule(ref, to, false)
}

// FireNow makes the deadline of the message that ref names come now, whatever it was: a
// ready message leaves its queue at once. It is dead-lettered as expired if the queue has a
// dead-letter exchange and drop is false, otherwise dropped. It is reported with Path
// Manual (Deadlines.Expiries), and dead letters carry the reason "expired". The outcome is
// Expired, Held (it will expire, and dead-letter, if it comes back) or Gone. Durable
// and concurrent as Reschedule is.
func (b *Broker) FireNow(ref deadline.Ref, drop bool) deadline.Outcome {
	outcome, _ := b.reschedule(ref, 1, drop)
	return outcome
}

func (b *Broker) reschedule(ref deadline.Ref, to deadline.Instant, drop bool) (outcome deadline.Outcome, now deadline.Ref) {
	q := b.registry.ByID(ref.Queue)
	if q == nil || b.opts.TTLOff {
		return deadline.Gone, ref
	}
	s := b.env.Begin()
	defer s.Done()
	q.Messages.Reschedule(s, []deadline.Ref{ref}, to, drop, func(o deadline.Outcome, r deadline.Ref) { outcome, now = o, r })
	return outcome, now
}
