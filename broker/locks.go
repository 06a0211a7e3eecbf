package broker

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"curfew/broker/queue"
)

// Holder has unacked messages: the channel that a consumer or a get was made on.
type Holder interface {
	// Lapsed asks whether seq of q is still held and, if it is, has the holder take
	// it for lost. False: its settlement is on the way, and counts. Called under the
	// queue's lock; must not block and must not call the broker.
	Lapsed(q *Queue, seq queue.Seq) bool
}

// locks are the deliveries of a queue with x-lock-duration, in the order in which they
// lapse. That is the order in which they were made or renewed, unless a policy changed the
// duration in between. So the oldest alone is looked at, and one timer serves them all.
// What was settled before stays in line until it is the oldest, or until there are more
// such than others. One that is renewed stands in line anew, and its old place is as that
// of one settled.
type locks struct {
	line  []lock // from head on
	head  int
	held  map[queue.Seq]heldLock // the lock that counts
	given uint64
}

// heldLock is by what a lock is found in the line.
type heldLock struct {
	number uint64
	until  int64
}

// lock is one delivery. A message that is delivered again gets another.
type lock struct {
	number uint64 // in the order in which they were made or renewed
	token  uint64 // random, and the same when it is renewed; 0: nobody was told, and none can
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
		l.held = map[queue.Seq]heldLock{}
	}
	l.given++
	k.number = l.given
	l.held[k.seq] = heldLock{k.number, k.until}
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

// find returns the lock that counts for a message; nil if it has none.
func (l *locks) find(seq queue.Seq) *lock {
	held, ok := l.held[seq]
	if !ok {
		return nil
	}
	line := l.line[l.head:]
	i, _ := slices.BinarySearchFunc(line, held, func(k lock, h heldLock) int {
		return cmp.Or(cmp.Compare(k.until, h.until), cmp.Compare(k.number, h.number))
	})
	return &line[i]
}

// release is told that the message was settled.
func (l *locks) release(seq queue.Seq) { delete(l.held, seq) }

// oldest is the first that is not settled; nil if there is none.
func (l *locks) oldest() *lock {
	for ; l.head < len(l.line); l.head++ {
		if k := &l.line[l.head]; l.held[k.seq].number == k.number {
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
		if l.held[k.seq].number == k.number {
			kept = append(kept, k)
		}
	}
	clear(l.line[len(kept):])
	l.line, l.head = kept, 0
}

// lockDelivery locks a delivery of a queue with x-lock-duration, to a consumer, or nil for
// a get, whose holder is told later. The lock stays what it
// is when a policy changes the duration. Called with mu held.
func (q *Queue) lockDelivery(s *step, seq queue.Seq, c *Consumer) {
	k := lock{seq: seq, until: q.lockedUntil(s), c: c}
	if c != nil {
		k.holder, _ = c.Sink.(Holder)
	}
	if q.asked.shows&showDeadline != 0 {
		var random [8]byte
		rand.Read(random[:])
		k.token = binary.BigEndian.Uint64(random[:]) | 1
	}
	q.addLock(k)
}

func (q *Queue) lockedUntil(s *step) int64 { return s.stamp + q.set().lockMillis*milli }

func (q *Queue) addLock(k lock) {
	if q.locks.add(k) {
		q.vh.b.alarms.add(q, k.until)
	}
}

// appendToken appends what x-lock-token says: the queue's incarnation, the message and the
// lock's own random number. Nobody can guess it who has not been given it, and it is of no
// use without the right to read the queue.
func (k *lock) appendToken(b []byte, q *Queue) []byte {
	var t [tokenBytes]byte
	binary.BigEndian.PutUint64(t[0:], q.id)
	binary.BigEndian.PutUint64(t[8:], uint64(k.seq))
	binary.BigEndian.PutUint64(t[16:], k.token)
	return base64.RawURLEncoding.AppendEncode(b, t[:])
}

const tokenBytes = 24

// lockToken is an x-lock-token, read.
type lockToken struct {
	queue uint64
	seq   queue.Seq
	token uint64
}

// parseLockToken returns ok false for what is no token.
func parseLockToken(text string) (t lockToken, ok bool) {
	var b [tokenBytes]byte
	if len(text) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return t, false
	}
	if _, err := base64.RawURLEncoding.Decode(b[:], []byte(text)); err != nil {
		return t, false
	}
	t.queue, t.seq = binary.BigEndian.Uint64(b[0:]), queue.Seq(binary.BigEndian.Uint64(b[8:]))
	t.token = binary.BigEndian.Uint64(b[16:])
	return t, t.token != 0
}

// RenewLock has a delivery of this queue locked for its whole x-lock-duration again,
// counting from now (Service Bus: RenewMessageLock), and returns until when, in Unix ms
// of the wall clock. token is the x-lock-token that came with it and stays good. The
// message's own deadline means nothing for its lock: while that is renewed it does not
// expire, as in Service Bus; it does when it comes back. Where a policy has shortened the
// duration or taken it away, the lock still lasts as long as was said before. False: the
// lock has lapsed, the message was settled, or it is no token of this queue's.
func (q *Queue) RenewLock(token string) (lockedUntil int64, ok bool) {
	t, ok := parseLockToken(token)
	if !ok || t.queue != q.id {
		return 0, false
	}
	return q.renew(t)
}

func (q *Queue) renew(t lockToken) (lockedUntil int64, ok bool) {
	s := q.vh.b.step()
	defer s.done()
	q.lock(s)
	defer q.mu.Unlock()
	k := q.locks.find(t.seq)
	if k == nil || k.token != t.token || k.until <= s.now {
		return 0, false
	}
	q.stir(s.now)
	renewed := *k
	renewed.until = max(k.until, q.lockedUntil(s)) // a policy may have made it shorter, or none
	q.addLock(renewed)
	return s.b.lockedMillis(renewed.until), true
}

// lockedMillis is when a lock lapses as users are shown it: Unix ms of the wall clock,
// rounded down.
func (b *Broker) lockedMillis(until int64) int64 { return (until - b.ahead()) / milli }

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
