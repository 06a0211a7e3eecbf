package queue

import (
	"fmt"
	"math"
	"math/bits"

	"curfew/broker/deadline"
)

// Queue is one message queue: its messages, their order and their states. See the package
// comment. It is not safe for concurrent use.
type Queue struct {
	opts Options
	entries

	// Ready are the messages that can be taken, including those past their deadline that nobody has noticed; Unacked are
	// those that consumers hold. Only the queue changes them.
	Ready, Unacked Sum

	waits *waits // nil: no message waits

	// highTaken is how many messages were taken one after the other without a turn of the normal ones, with Options.TwoLevels.
	highTaken uint8
}

// Sum is a number of messages and the size of their bodies, and those of them that are flagged Durable.
type Sum struct {
	Count, Durable      int
	Bytes, DurableBytes int64
}

// add counts a message once more, or once less if by is -1.
func (s *Sum) add(e *entry, by int) {
	size := int64(by) * int64(e.bytes)
	s.Count, s.Bytes = s.Count+by, s.Bytes+size
	if e.flags&Durable != 0 {
		s.Durable, s.DurableBytes = s.Durable+by, s.DurableBytes+size
	}
}

// New makes an empty queue.
func New(o Options) *Queue {
	q := &Queue{opts: o, entries: entries{byPriority: make([]priorityEntries, int(o.Priorities)+1)}}
	for i := range q.byPriority {
		q.byPriority[i] = priorityEntries{next: 1, head: 1}
	}
	return q
}

// lastNormal is the highest priority that is not high, and highWeight how many high messages are taken for a normal one, with Options.TwoLevels.
const (
	lastNormal = 4
	highWeight = 2
)

// Publish puts a message at the tail of its priority and returns its identity.
// A priority above the queue's maximum counts as the maximum. It never refuses a message: ask
// Exceeds before, and call Trim after.
func (q *Queue) Publish(m Message, priority uint8) Seq {
	p := min(priority, q.opts.Priorities)
	if q.opts.TwoLevels && priority <= lastNormal {
		p = 0
	}
	n := q.byPriority[p].next
	q.add(p, n, m)
	return makeSeq(p, n)
}

// Restore puts a message that outlived a restart back under its identity. It is for queues to
// which nothing has been published yet. The seqs of a priority have to ascend and may have
// gaps; Publish goes on above the last. It panics if the queue does not have that priority, or
// the seq is out of order: the caller has mixed up two queues. deliveries are those that failed
// before.
func (q *Queue) Restore(s Seq, m Message, deliveries uint16) {
	p, n := s.Priority(), s.number()
	if int(p) >= len(q.byPriority) || n < q.byPriority[p].next {
		panic(fmt.Sprintf("queue: restore of %v, which is out of order or of no known priority", s))
	}
	q.add(p, n, m)
	at, _ := q.find(s)
	at.entry().deliveries = deliveries
}

// Skip goes past what is queued by maxSkip numbers at most: the directory of pages takes 8 octets for each 32,768 of them, or 4 MiB.
// Where nothing is queued they cost nothing.
const (
	maxSkip  = 1 << 34
	maxEmpty = 1 << 48
)

// Skip has a queue go on above a seq, which identifies a message that is kept elsewhere. It is for queues to which nothing
// has been published yet. A seq that the queue cannot have given, or long before what it holds, is ignored.
func Skip(q *Queue, s Seq) {
	p := int(s.Priority())
	if p >= len(q.byPriority) {
		return
	}
	l, n := &q.byPriority[p], s.number()
	if n < l.next+maxSkip || len(l.dir) == 0 && n < maxEmpty {
		l.next = max(l.next, n+1)
	}
}

func (q *Queue) add(priority uint8, number uint64, m Message) {
	at := q.byPriority[priority].add(number, m, &q.spares)
	q.countReady(priority, at.entry())
}

// Take hands out the first ready message whose deadline has not come, of the highest priority
// that has one; it is unacked from then on. Messages past their deadline on the way are settled
// into fx. ok is false if no message can be delivered, or if fx is full (Effects.Full): then the
// caller acts on it and calls again.
func (q *Queue) Take(now deadline.Instant, fx *Effects) (d Delivery, ok bool) {
	for {
		s, at, ok := q.first()
		if !ok {
			return Delivery{}, false
		}
		e := at.entry()
		if e.due(now) && (e.flags&Immediate == 0 || now != e.expiresAt) {
			if fx.Full() {
				return Delivery{}, false
			}
			q.settle(s, at, Expired, fx)
			continue
		}
		q.hold(s, at)
		if q.highTaken++; q.highTaken > highWeight {
			q.highTaken = 0
		}
		m := e.message()
		return Delivery{s, m, m.Flags&Redelivered != 0, e.deliveries}, true
	}
}

// first is the message at the head: the first ready one of the highest priority
// that has one, expired or not. With Options.TwoLevels it is a normal one in each third turn.
func (q *Queue) first() (Seq, place, bool) {
	if q.opts.TwoLevels && q.highTaken == highWeight && q.ready[0]&1 != 0 {
		at := q.byPriority[0].firstReady()
		return makeSeq(0, at.number), at, true
	}
	for i := len(q.ready) - 1; i >= 0; i-- {
		if w := q.ready[i]; w != 0 {
			p := i*64 + bits.Len64(w) - 1
			at := q.byPriority[p].firstReady()
			return makeSeq(uint8(p), at.number), at, true
		}
	}
	return 0, place{}, false
}

// Settle settles an unacked message for a reason: Acked, or Rejected by a consumer that does not want it back in
// the queue. It returns false, and does nothing, if s is not unacked.
func (q *Queue) Settle(s Seq, r Reason, fx *Effects) bool {
	at, ok := q.find(s)
	if !ok || at.entry().state != Unacked {
		return false
	}
	q.settle(s, at, r, fx)
	return true
}

// Requeue returns an unacked message to its old place, marked Redelivered, with
// its deadline unchanged. If that deadline has come it is Expired at once. Otherwise,
// if more of its deliveries failed than the limit allows, it leaves with
// DeliveryLimit. failed counts this delivery as one: the consumer failed on the
// message and did not merely give it back. The caller knows which it was
// (RabbitMQ: Negative Acknowledgements). It returns false, and does nothing, if
// s is not unacked.
func (q *Queue) Requeue(now deadline.Instant, s Seq, failed bool, fx *Effects) bool {
	at, ok := q.find(s)
	if !ok || at.entry().state != Unacked {
		return false
	}
	e := at.entry()
	if failed && e.deliveries < math.MaxUint16 {
		e.deliveries++
	}
	switch {
	case e.due(now):
		q.settle(s, at, Expired, fx)
	case q.opts.DeliveryLimit >= 0 && int64(e.deliveries) > q.opts.DeliveryLimit: // as in RabbitMQ's quorum queues
		q.settle(s, at, DeliveryLimit, fx)
	default:
		q.Unacked.add(e, -1)
		e.flags |= Redelivered
		q.byPriority[s.Priority()].setReady(at)
		q.countReady(s.Priority(), e)
	}
	return true
}

// Expire settles the message s, wherever in the queue it is, if it has this deadline, the deadline
// has come and no consumer holds it. Any number of
// callers may propose the same expiry: one gets Expired, the others Gone.
func (q *Queue) Expire(now deadline.Instant, s Seq, dueAt deadline.Instant, fx *Effects) deadline.Answer {
	at, ok := q.find(s)
	if !ok || dueAt == 0 || at.entry().expiresAt != dueAt {
		return deadline.Answer{Outcome: deadline.Gone}
	}
	switch e := at.entry(); {
	case !e.due(now):
		return deadline.Answer{Outcome: deadline.NotDue, At: dueAt}
	case e.state == Unacked:
		return deadline.Answer{Outcome: deadline.Held}
	}
	q.settle(s, at, Expired, fx)
	return deadline.Answer{Outcome: deadline.Expired, At: now}
}

// Reschedule gives the message s another deadline in place of the one it has; 0 is none,
// for both. The message keeps its place in the queue. If the new deadline has come, a message
// that no consumer holds is settled as Expired, still with the deadline that it had; an unacked one stays
// with its consumer and will expire if it is requeued (Held). From then on a call that names the
// old deadline gets Gone. wasTracked: the old deadline was tracked, and Track has to be called
// again.
func (q *Queue) Reschedule(now deadline.Instant, s Seq, dueAt, newDeadline deadline.Instant, fx *Effects) (_ deadline.Outcome, wasTracked bool) {
	at, ok := q.find(s)
	if !ok || at.entry().expiresAt != dueAt {
		return deadline.Gone, false
	}
	e := at.entry()
	wasTracked = e.flags&tracked != 0
	due := newDeadline != 0 && now >= newDeadline
	if due && e.state != Unacked {
		q.settle(s, at, Expired, fx)
		return deadline.Expired, wasTracked
	}
	e.expiresAt = newDeadline
	e.flags &^= Immediate | tracked
	if due {
		return deadline.Held, wasTracked
	}
	return deadline.Rescheduled, wasTracked
}

// Remove settles the ready or waiting message s as Purged, if it has this deadline. False: it
// is gone, or held by a consumer.
func (q *Queue) Remove(s Seq, deadline deadline.Instant, fx *Effects) bool {
	at, ok := q.find(s)
	if !ok || at.entry().expiresAt != deadline || at.entry().state == Unacked {
		return false
	}
	q.settle(s, at, Purged, fx)
	return true
}

// Hold makes the ready message s unacked, wherever in the queue it is, if it has this deadline.
// False: it is gone, held, waits, or has another deadline.
func (q *Queue) Hold(s Seq, deadline deadline.Instant) bool {
	at, ok := q.find(s)
	if !ok || at.entry().expiresAt != deadline || at.entry().state != Ready {
		return false
	}
	q.hold(s, at)
	return true
}

// hold makes a ready message unacked.
func (q *Queue) hold(s Seq, at place) {
	q.unready(s, at)
	at.entry().state = Unacked
	q.Unacked.add(at.entry(), 1)
}

func (e *entry) settled(s Seq, r Reason) Settled {
	return Settled{Seq: s, Message: e.message(), Reason: r, Tracked: e.flags&tracked != 0, Deliveries: e.deliveries}
}

// settle is the only way out of the queue, except for Sweep.
func (q *Queue) settle(s Seq, at place, r Reason, fx *Effects) {
	e := at.entry()
	fx.Settled = append(fx.Settled, e.settled(s, r))
	switch e.state {
	case Ready:
		q.unready(s, at)
	case Waiting:
		q.waits.remove(s, e, false)
	default:
		q.Unacked.add(e, -1)
	}
	e.state = gone
	q.byPriority[s.Priority()].release(at, &q.spares)
}

// unready removes a message from the ready ones; the caller gives it a state.
func (q *Queue) unready(s Seq, at place) {
	l := &q.byPriority[s.Priority()]
	l.unready(at)
	if l.ready == 0 {
		q.ready[s.Priority()/64] &^= 1 << (s.Priority() % 64)
	}
	q.Ready.add(at.entry(), -1)
}

func (q *Queue) countReady(priority uint8, e *entry) {
	q.ready[priority/64] |= 1 << (priority % 64)
	q.Ready.add(e, 1)
}

// Len is Ready, Unacked and Waiting together.
func (q *Queue) Len() int {
	return q.Ready.Count + q.Unacked.Count + q.Waiting().Count
}

// Head is the message that Take would consider first; ok is false if none is ready.
func (q *Queue) Head() (s Seq, m Message, ok bool) {
	s, at, ok := q.first()
	if !ok {
		return 0, Message{}, false
	}
	return s, at.entry().message(), true
}

// Shrink releases the memory kept for future messages. It is for a queue that has been empty for a
// while; on a busy one it only costs allocations.
func (q *Queue) Shrink() {
	for i := range q.byPriority {
		q.byPriority[i].shrink(&q.spares)
	}
	q.spares = spares{}
	if q.Waiting().Count == 0 {
		q.waits = nil
	}
}
