package delivery

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// LockHolder has unacked messages with locks: the channel of a consumer or a get.
type LockHolder interface {
	// Lapsed reports whether seq of the queue with that incarnation was still held; if so, the
	// holder has now lost it. False: its settlement is on the way, and will count. Lapsed is
	// called under the queue's lock, must not block and must not call the broker.
	Lapsed(queue uint64, seq queue.Seq) bool
}

// Locks are the deliveries of a queue with x-lock-duration that nobody has settled.
type Locks struct {
	q     *Queue
	table *lockTable // nil: empty
}

// lockTable has the current lock of each message. A lock that is settled or renewed leaves a stale entry
// in dues. A nil table is empty; all but add may be called on it.
type lockTable struct {
	of   map[queue.Seq]lock
	dues queue.Dues // by when they expire: one timer serves them all
}

// lock is the lock of one delivery. A message that is delivered again gets another.
type lock struct {
	token  uint64 // random, and kept when the lock is renewed; 0: nobody was given it, so it cannot be renewed
	until  deadline.Instant
	c      *Consumer
	holder LockHolder // nil: nobody needs to be asked
}

// add gives a message a lock in place of any that it has, and reports whether the lock is now the first to expire.
func (l *lockTable) add(seq queue.Seq, k lock) (first bool) {
	l.release(seq)
	l.of[seq] = k
	first = l.dues.Len() == 0 || k.until < l.dues.First().At
	l.dues.Push(queue.Due{At: k.until, Seq: seq})
	return first
}

// find returns the lock of a message.
func (l *lockTable) find(seq queue.Seq) (k lock, ok bool) {
	if l != nil {
		k, ok = l.of[seq]
	}
	return k, ok
}

// release forgets the lock of a message that was settled.
func (l *lockTable) release(seq queue.Seq) {
	if _, ok := l.find(seq); ok {
		delete(l.of, seq)
		l.dues.Drop(func(d queue.Due) bool { return l.of[d.Seq].until == d.At })
	}
}

// pop takes the lock that expires first, if that is due, out of the table.
// stale: it was only an entry that a lock has left.
func (l *lockTable) pop(now deadline.Instant) (seq queue.Seq, k lock, stale, ok bool) {
	if l == nil || l.dues.Len() == 0 {
		return 0, lock{}, false, false
	}
	d := l.dues.First()
	k = l.of[d.Seq]
	stale = k.until != d.At
	if !stale && d.At > now {
		return 0, lock{}, false, false
	}
	l.dues.Pop()
	if stale {
		l.dues.Stale--
	} else {
		delete(l.of, d.Seq)
	}
	return d.Seq, k, stale, true
}

// addLocked locks a delivery to c. For a get, c is nil and the holder is set later. A policy that
// changes the duration does not change the lock.
func (l *Locks) addLocked(s *Transition, seq queue.Seq, c *Consumer) {
	k := lock{until: l.untilLocked(s), c: c}
	if c != nil {
		k.holder, _ = c.Sink.(LockHolder)
	}
	if l.q.Arguments.Shows&policy.ShowDeadline != 0 {
		var random [8]byte
		rand.Read(random[:])
		k.token = binary.BigEndian.Uint64(random[:]) | 1
	}
	l.insertLocked(seq, k)
}

// untilLocked is when a lock that is made now expires.
func (l *Locks) untilLocked(s *Transition) deadline.Instant {
	return s.stamp.AddMillis(deadline.Millis(l.q.Settings().LockMillis))
}

func (l *Locks) insertLocked(seq queue.Seq, k lock) {
	if l.table == nil {
		l.table = &lockTable{of: map[queue.Seq]lock{}}
	}
	if l.table.add(seq, k) {
		l.q.env.Timers.Add(l.q, k.until)
	}
}

// appendToken appends an x-lock-token: the queue's incarnation, the message and the
// lock's own random number. It cannot be guessed, and is useless without the right to read the
// queue.
func (k *lock) appendToken(b []byte, q *Queue, seq queue.Seq) []byte {
	var t [tokenBytes]byte
	binary.BigEndian.PutUint64(t[0:], q.ID)
	binary.BigEndian.PutUint64(t[8:], uint64(seq))
	binary.BigEndian.PutUint64(t[16:], k.token)
	return base64.RawURLEncoding.AppendEncode(b, t[:])
}

const tokenBytes = 24

// lockToken is a decoded x-lock-token.
type lockToken struct {
	Queue uint64
	seq   queue.Seq
	token uint64
}

// ParseLockToken decodes an x-lock-token; ok is false if the text is not one.
func ParseLockToken(text string) (t lockToken, ok bool) {
	var b [tokenBytes]byte
	if len(text) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return t, false
	}
	if _, err := base64.RawURLEncoding.Decode(b[:], []byte(text)); err != nil {
		return t, false
	}
	t.Queue, t.seq = binary.BigEndian.Uint64(b[0:]), queue.Seq(binary.BigEndian.Uint64(b[8:]))
	t.token = binary.BigEndian.Uint64(b[16:])
	return t, t.token != 0
}

// Renew locks a delivery of this queue for its whole x-lock-duration again, counting from now
// (Service Bus: RenewMessageLock), and returns until when, in Unix ms of the wall clock. token is
// the x-lock-token that came with it and stays valid. The message's own deadline does not affect
// its lock: while the lock is renewed the message does not expire, as in Service Bus; it expires
// when it comes back. If a policy has shortened the duration or removed it, the lock still lasts
// as long as it did before. False: the lock has expired, the message was settled, or the token
// belongs to another queue.
func (l *Locks) Renew(token string) (lockedUntil int64, ok bool) {
	ok = l.with(token, "renew lock", func(s *Transition, seq queue.Seq, k lock) bool {
		l.q.lastUsedAt = s.Now
		k.until = max(k.until, l.untilLocked(s)) // a policy may have shortened or removed the duration
		l.insertLocked(seq, k)
		lockedUntil = s.Env.Clock.UnixMillisDown(k.until)
		return true
	})
	return lockedUntil, ok
}

// with calls fn with the lock that a token names, under the queue's lock, and returns what it returns; false: there is no such lock.
func (l *Locks) with(token, operation string, fn func(*Transition, queue.Seq, lock) bool) bool {
	t, ok := ParseLockToken(token)
	if !ok || t.Queue != l.q.ID {
		return false
	}
	s := l.q.env.Begin()
	defer s.Done()
	return l.q.locked(s, operation, func() bool {
		k, ok := l.table.find(t.seq)
		return ok && k.token == t.token && k.until > s.Now && fn(s, t.seq, k)
	})
}

// Take takes the delivery whose x-lock-token is given away from its holder: nothing but Queue.SettleFor ends
// it from then on (Service Bus: settlement through $management). c is to be passed on to that. False: the
// lock has expired, the message was settled, or the token belongs to another queue.
func (l *Locks) Take(token string) (seq queue.Seq, c *Consumer, ok bool) {
	ok = l.with(token, "settle", func(_ *Transition, of queue.Seq, k lock) bool {
		if k.holder != nil && !k.holder.Lapsed(l.q.ID, of) {
			return false
		}
		l.table.release(of)
		seq, c = of, k.c
		return true
	})
	return seq, c, ok
}

// Keep leaves deliveries to their locks: their receiver has gone, and they come back when their
// locks expire (Service Bus). Those without a lock come back now. c, if not nil, received them.
func (l *Locks) Keep(seqs []queue.Seq, c *Consumer) {
	q := l.q
	s := q.env.Begin()
	defer s.Done()
	var back []queue.Seq
	for some := range slices.Chunk(seqs, queue.AtOnce) {
		q.lock(s)
		s.touched += len(some)
		for _, seq := range some {
			if k, ok := l.table.find(seq); ok {
				k.c, k.holder = nil, nil
				l.table.of[seq] = k
			} else {
				back = append(back, seq)
			}
		}
		q.unlock(s, "settle")
	}
	if len(back) > 0 {
		q.SettleWith(s, Release, back, c)
	}
}

// expireLocked requeues what was held for longer than x-lock-duration (Service Bus: Message
// locks), which counts as a failed delivery. It deals with a bounded number of locks; the timer comes
// at once for the others. The consumer that held a message gets its credit
// back only when it settles the message, which then has no other effect.
func (l *Locks) expireLocked(s *Transition) {
	for s.touched < queue.AtOnce {
		seq, k, stale, ok := l.table.pop(s.Now)
		if !ok {
			return
		}
		s.touched++
		if stale || k.holder != nil && !k.holder.Lapsed(l.q.ID, seq) {
			continue
		}
		if l.q.settleOneLocked(s, Requeue, seq) {
			s.Env.Counters.Lapsed.Add(1)
			if k.c != nil {
				k.c.unacked--
			}
		}
	}
}

// againLocked sets the timer for the lock that expires first.
func (l *Locks) againLocked(s *Transition) {
	if l.table != nil && l.table.dues.Len() > 0 {
		l.q.env.Timers.Add(l.q, max(l.table.dues.First().At, s.Now)) // in its turn
	}
}

// shrinkLocked gives memory back once nothing is locked.
func (l *Locks) shrinkLocked() {
	if l.table != nil && len(l.table.of) == 0 {
		l.table = nil
	}
}
