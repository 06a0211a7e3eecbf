package delivery

import (
	"cmp"
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

// locks are the deliveries of a queue with x-lock-duration that nobody has settled.
type locks struct {
	q    *Queue
	line *lockLine // nil: there has been none yet
}

// lockLine is the locks of a queue in the order in which they expire. That is the order in
// which they were made or renewed, unless a policy changed the duration in between. So only
// the oldest is looked at, and one timer serves them all. A lock whose message was settled
// stays in line until it is the oldest, or until there are many of them. A lock that is renewed
// joins the line again, and its old place counts as settled. A nil line is empty; all but add may be called on it.
type lockLine struct {
	line  []lock // from head on
	head  int
	held  map[queue.Seq]heldLock // the current lock of each message
	given uint64
}

// heldLock is the key by which a lock is found in the line.
type heldLock struct {
	number uint64
	until  deadline.Instant
}

// lock is the lock of one delivery. A message that is delivered again gets another.
type lock struct {
	number uint64 // in the order in which they were made or renewed
	token  uint64 // random, and kept when the lock is renewed; 0: nobody was given it, so it cannot be renewed
	seq    queue.Seq
	until  deadline.Instant
	c      *Consumer
	holder LockHolder // nil: nobody needs to be asked
}

// locksSlack is how many more settled than other deliveries may be in line.
const locksSlack = 256

// add adds a lock and reports whether it is now the first.
func (l *lockLine) add(k lock) (first bool) {
	if l.held == nil {
		l.held = map[queue.Seq]heldLock{}
	}
	l.given++
	k.number = l.given
	l.held[k.seq] = heldLock{k.number, k.until}
	if l.compact(); len(l.line)-l.head > 2*len(l.held)+locksSlack {
		l.dropSettled()
	}
	l.line = append(l.line, k)
	at := len(l.line) - 1
	for ; at > l.head && l.line[at-1].until > k.until; at-- { // those of a longer duration
		l.line[at] = l.line[at-1]
	}
	l.line[at] = k
	return at == l.head
}

// find returns the current lock of a message; nil if it has none.
func (l *lockLine) find(seq queue.Seq) *lock {
	if l == nil {
		return nil
	}
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

// release forgets the lock of a message that was settled.
func (l *lockLine) release(seq queue.Seq) {
	if l != nil {
		delete(l.held, seq)
	}
}

// oldest is the first that is not settled; nil if there is none.
func (l *lockLine) oldest() *lock {
	if l == nil {
		return nil
	}
	for ; l.head < len(l.line); l.head++ {
		if k := &l.line[l.head]; l.held[k.seq].number == k.number {
			return k
		}
		l.line[l.head] = lock{}
	}
	l.line, l.head = l.line[:0], 0
	return nil
}

// compact moves the line to the front of its memory once half of that is free.
func (l *lockLine) compact() {
	if l.head > len(l.line)/2 {
		n := copy(l.line, l.line[l.head:])
		clear(l.line[n:])
		l.line, l.head = l.line[:n], 0
	}
}

// dropSettled removes the settled locks from the line.
func (l *lockLine) dropSettled() {
	kept := l.line[:0]
	for _, k := range l.line[l.head:] {
		if l.held[k.seq].number == k.number {
			kept = append(kept, k)
		}
	}
	clear(l.line[len(kept):])
	l.line, l.head = kept, 0
}

// addLocked locks a delivery to c. For a get, c is nil and the holder is set later. A policy that
// changes the duration does not change the lock.
func (l *locks) addLocked(s *Transition, seq queue.Seq, c *Consumer) {
	k := lock{seq: seq, until: l.untilLocked(s), c: c}
	if c != nil {
		k.holder, _ = c.Sink.(LockHolder)
	}
	if l.q.Arguments.Shows&policy.ShowDeadline != 0 {
		var random [8]byte
		rand.Read(random[:])
		k.token = binary.BigEndian.Uint64(random[:]) | 1
	}
	l.insertLocked(k)
}

// untilLocked is when a lock that is made now expires.
func (l *locks) untilLocked(s *Transition) deadline.Instant {
	return s.stamp.AddMillis(deadline.Millis(l.q.Settings().LockMillis))
}

func (l *locks) insertLocked(k lock) {
	if l.line == nil {
		l.line = new(lockLine)
	}
	if l.line.add(k) {
		l.q.env.Timers.Add(l.q, k.until)
	}
}

// appendToken appends an x-lock-token: the queue's incarnation, the message and the
// lock's own random number. It cannot be guessed, and is useless without the right to read the
// queue.
func (k *lock) appendToken(b []byte, q *Queue) []byte {
	var t [tokenBytes]byte
	binary.BigEndian.PutUint64(t[0:], q.id)
	binary.BigEndian.PutUint64(t[8:], uint64(k.seq))
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

// RenewLock locks a delivery of this queue for its whole x-lock-duration again, counting from now
// (Service Bus: RenewMessageLock), and returns until when, in Unix ms of the wall clock. token is
// the x-lock-token that came with it and stays valid. The message's own deadline does not affect
// its lock: while the lock is renewed the message does not expire, as in Service Bus; it expires
// when it comes back. If a policy has shortened the duration or removed it, the lock still lasts
// as long as it did before. False: the lock has expired, the message was settled, or the token
// belongs to another queue.
func (q *Queue) RenewLock(token string) (lockedUntil int64, ok bool) {
	t, ok := ParseLockToken(token)
	if !ok || t.Queue != q.id {
		return 0, false
	}
	s := q.env.Begin()
	defer s.Done()
	q.lock(s)
	defer q.unlock(s, "renew lock")
	k := q.locks.line.find(t.seq)
	if k == nil || k.token != t.token || k.until <= s.Now {
		return 0, false
	}
	q.markUsedLocked(s.Now)
	renewed := *k
	renewed.until = max(k.until, q.locks.untilLocked(s)) // a policy may have shortened or removed the duration
	q.locks.insertLocked(renewed)
	return s.Env.Clock.UnixMillisDown(renewed.until), true
}

// TakeLock takes the delivery whose x-lock-token is given away from its holder: nothing but SettleFor ends
// it from then on (Service Bus: settlement through $management). c is to be passed on to that. False: the
// lock has expired, the message was settled, or the token belongs to another queue.
func (q *Queue) TakeLock(token string) (seq queue.Seq, c *Consumer, ok bool) {
	t, ok := ParseLockToken(token)
	if !ok || t.Queue != q.id {
		return 0, nil, false
	}
	s := q.env.Begin()
	defer s.Done()
	q.lock(s)
	defer q.unlock(s, "settle")
	k := q.locks.line.find(t.seq)
	if k == nil || k.token != t.token || k.until <= s.Now || k.holder != nil && !k.holder.Lapsed(q.id, t.seq) {
		return 0, nil, false
	}
	c = k.c
	q.locks.line.release(t.seq)
	return t.seq, c, true
}

// KeepLocks leaves deliveries to their locks: their receiver has gone, and they come back when their
// locks expire (Service Bus). Those without a lock come back now. c, if not nil, received them.
func (q *Queue) KeepLocks(seqs []queue.Seq, c *Consumer) {
	s := q.env.Begin()
	defer s.Done()
	var back []queue.Seq
	q.lock(s)
	for _, seq := range seqs {
		if k := q.locks.line.find(seq); k != nil {
			k.c, k.holder = nil, nil
		} else {
			back = append(back, seq)
		}
	}
	q.unlock(s, "settle")
	if len(back) > 0 {
		q.SettleWith(s, Release, back, c)
	}
}

// expireLocked requeues what was held for longer than x-lock-duration (Service Bus: Message
// locks), which counts as a failed delivery. It deals with a bounded number of locks; the timer comes
// at once for the others. The consumer that held a message gets its credit
// back only when it settles the message, which then has no other effect.
func (l *locks) expireLocked(s *Transition) {
	for k := l.line.oldest(); k != nil && k.until <= s.Now && s.touched < queue.AtOnce; k = l.line.oldest() {
		s.touched++
		l.line.release(k.seq)
		if k.holder != nil && !k.holder.Lapsed(l.q.id, k.seq) {
			continue
		}
		if l.q.settleOneLocked(s, Requeue, k.seq) {
			s.Env.Counters.Lapsed.Add(1)
			if k.c != nil {
				k.c.unacked--
			}
		}
	}
}
