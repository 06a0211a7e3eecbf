package delivery

import (
	"sync"

	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// messages is the contents of a queue behind the queue's lock: the core, and what is known about the messages in it.
// Code that only reads a queue needs nothing else (browse.go, deadlines.go).
type messages struct {
	*Identity
	env *Env

	mu            sync.Mutex
	core          *queue.Queue
	enqueued      *enqueueTimes // of a queue with x-delivery-deadline; nil for others
	ages          *ages         // nil: no message has come yet
	counters      QueueStats
	deleted       bool
	shrinkPending bool             // the shrinker looks at it later
	serving       bool             // a goroutine goes on with serve
	checkingIdle  bool             // x-auto-delete-on-idle has run out, and it is being checked whether a delayed message will go to the queue
	timerIndex    int32            // guarded by the timers
	lastActiveAt  deadline.Instant // when something last happened
	// lastUsedAt is when the queue was last used, by the rules of x-auto-delete-on-idle. The timer stays as it is
	// when it is set: when it fires, the queue finds that it has been used since.
	lastUsedAt deadline.Instant
}

// lock takes the queue's lock for a transition, and then reads the clock, since it may have had to wait.
func (q *messages) lock(s *Transition) {
	q.mu.Lock()
	q.startLocked(s)
}

// startLocked is the rest of lock, for a caller who has taken the lock in another way.
func (q *messages) startLocked(s *Transition) {
	s.ReadClock()
	s.touched = 0
	q.lastActiveAt = s.Now
}

// unlock ends what lock has begun. operation is what was done, in a word.
func (q *messages) unlock(s *Transition, operation string) {
	held, at, touched := q.env.Clock.Now().Sub(s.Now), s.Now, s.touched
	q.mu.Unlock()
	q.env.Holds.add(q, operation, at, held, touched)
}

// locked runs one step of an operation, which fn does, under the queue's lock, and returns what it returns.
func (q *messages) locked(s *Transition, operation string, fn func() bool) bool {
	q.lock(s)
	defer q.unlock(s, operation)
	return fn()
}

// Ref names a message that Browse showed.
func (q *messages) Ref(x *Browsed) deadline.Ref { return q.refOf(x.Seq, x.Deadline) }

// termsOf are what the journal has to know about a message of core besides its position.
func termsOf(core *queue.Queue, seq queue.Seq) (queue.Message, store.Terms, bool) {
	x, deliveries, ok := core.Find(seq)
	return x, store.Terms{ExpiresAt: x.ExpiresAt, Deliveries: deliveries, Flags: uint8(x.Flags), WaitsUntil: core.WaitsUntil(seq)}, ok
}

// amendLocked adds the current terms of a message to the transition's records.
func (q *messages) amendLocked(s *Transition, seq queue.Seq) {
	x, terms, ok := termsOf(q.core, seq)
	if ok && x.Flags&queue.Durable != 0 {
		s.amended = append(s.amended, store.Amend{Queue: q.ID, Seq: uint64(seq), Pos: store.Pos(x.Pos), Durable: true, Terms: terms})
	}
}

// Tails returns, for each priority, the last message that entered the queue, even if it has left
// since: later messages of that priority have a higher Seq. 0: none has entered.
func (q *messages) Tails() []queue.Seq {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Tails()
}
