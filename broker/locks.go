package broker

import "curfew/broker/queue"

// Holder has unacked messages: the channel that a consumer or a get was made on.
type Holder interface {
	// Lapsed asks whether seq of q is still held and, if it is, has the holder take
	// it for lost. False: its settlement is on the way, and counts. Called under the
	// queue's lock; must not block and must not call the broker.
	Lapsed(q *Queue, seq queue.Seq) bool
}

// locks are the deliveries of a queue with x-lock-duration, in the order in which they
// lapse, which is the order they were made unless a policy changed the duration between:
// so the oldest alone is looked at, and one alarm serves them all. What was settled before
// stays in line until it is the oldest, or until there are more such than others.
type locks struct {
	line  []lock // from head on
	head  int
	held  map[queue.Seq]uint64 // number of the lock that counts
	given uint64
}

// lock is one delivery. A message that is delivered again gets another.
type lock struct {
	number uint64
	seq    queue.Seq
	until  int64 // Unix µs
	c      *Consumer
	holder Holder // nil: nobody needs to be asked
}

// locksSlack is how many settled deliveries may stand in line beside as many as
// there are others.
const locksSlack = 256

// add returns true if no other is before it.
func (l *locks) add(k lock) (first bool) {
	if l.held == nil {
		l.held = map[queue.Seq]uint64{}
	}
	l.given++
	k.number = l.given
	l.held[k.seq] = k.number
	if l.tidy(); len(l.line)-l.head > 2*len(l.held)+locksSlack {
		l.drop()
	}
	l.line = append(l.line, k)
	at := len(l.line) - 1
	for ; at > l.head && l.line[at-1].until > k.until; at-- { // those of a longer duration
		l.line[at] = l.line[at-1]
	}
	l.line[at] = k
	return at == l.head
}

// release is told that the message was settled.
func (l *locks) release(seq queue.Seq) { delete(l.held, seq) }

// oldest is the first that is not settled; nil if there is none.
func (l *locks) oldest() *lock {
	for ; l.head < len(l.line); l.head++ {
		if k := &l.line[l.head]; l.held[k.seq] == k.number {
			return k
		}
		l.line[l.head] = lock{}
	}
	l.line, l.head = l.line[:0], 0
	return nil
}

// tidy moves the line to the front of its memory once half of that is free.
func (l *locks) tidy() {
	if l.head > len(l.line)/2 {
		n := copy(l.line, l.line[l.head:])
		clear(l.line[n:])
		l.line, l.head = l.line[:n], 0
	}
}

// drop takes those that are settled out of the line.
func (l *locks) drop() {
	kept := l.line[:0]
	for _, k := range l.line[l.head:] {
		if l.held[k.seq] == k.number {
			kept = append(kept, k)
		}
	}
	clear(l.line[len(kept):])
	l.line, l.head = kept, 0
}

// lockDelivery notes a delivery of a queue with x-lock-duration. The lock stays what it is
// when a policy changes the duration. Called with mu held.
func (q *Queue) lockDelivery(s *step, seq queue.Seq, c *Consumer, holder Holder) {
	until := s.stamp + q.set().lockMillis*milli
	if q.locks.add(lock{seq: seq, until: until, c: c, holder: holder}) {
		q.vh.b.alarms.add(q, until)
	}
}

// lapse gives back what was held for longer than x-lock-duration (Service Bus:
// Message locks), which counts as a failed delivery. The consumer that held it has
// no credit for it before it settles it, in vain. Called with mu held.
func (q *Queue) lapse(s *step) {
	for k := q.locks.oldest(); k != nil && k.until <= s.now; k = q.locks.oldest() {
		q.locks.release(k.seq)
		if k.holder != nil && !k.holder.Lapsed(q, k.seq) {
			continue
		}
		if q.settleOne(s, Requeue, k.seq) {
			s.b.counters.lapsed.Add(1)
			if k.c != nil {
				k.c.unacked--
			}
		}
	}
}
