package delivery

import (
	"slices"
	"time"

	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

const (
	// RetryFirst is how long letters wait that could not be forwarded. It doubles with each try
	// that forwards none of them, up to retryLast.
	RetryFirst = time.Second
	retryLast  = 4 * time.Second
	// retryAtOnce is how many letters of a queue are tried each time. When one goes through, the
	// next follow at once.
	retryAtOnce = 256
)

// Retained are the letters of one source that not all of their targets took: dead letters
// of a queue with x-dead-letter-strategy at-least-once whose target rejects them because it is
// full (x-overflow) or has been deleted, or whose exchange is missing or routes them nowhere
// (RabbitMQ: Quorum Queues, At-least-once dead lettering); and letters for which the queue
// for undeliverable messages could not be made. They have left the queue, count against its
// limits, and are tried again until all targets have them.
//
// In the journal they are still in their queue: after a restart they are ready again, and
// those that expired expire again. So a target may get one twice, but never loses one. With
// the default strategy a full target accepts a dead letter, and one without a target is
// parked. Each try uses the dead-letter exchange that the queue has at that moment: a policy
// that corrects it frees the letters. A policy that removes it leaves their destination as it
// was.
//
// It is guarded by the lock of its source.
type Retained struct {
	letters *Letters
	timers  *deadline.Timers
	source  deadline.Timed // its timer retries them
	kept    *retained      // nil: there have been none yet
	closed  bool           // the source is deleted
}

// retained is the state that only few queues need.
type retained struct {
	line    letterLine
	bytes   int64
	retryAt deadline.Instant // 0 while there are none
	pause   time.Duration    // between the last try and the next
}

// Init must be called before any other method. t wakes source when it is time for RetryLocked.
func (r *Retained) Init(letters *Letters, t *deadline.Timers, source deadline.Timed) {
	r.letters, r.timers, r.source = letters, t, source
	letters.Retained = r
}

// Keep keeps a letter for another try, and notes which queues have it: those in into, which also
// has the letter's receipt if there is one. False: its source is deleted.
func (r *Retained) Keep(s *Transition, kept Letter, into []store.Enqueue, receipt store.Pos) bool {
	r.letters.mu.Lock()
	defer r.letters.mu.Unlock()
	if r.closed {
		return false
	}
	s.ReadClock()
	kept.Tried = true
	kept.Done = slices.Grow(slices.Clip(kept.Done), len(into))
	for _, e := range into {
		if e.Pos != receipt {
			kept.Done = append(kept.Done, e.Queue)
		}
	}
	kept.Unsaved = kept.Unsaved && len(kept.Done) > 0 // then the journal keeps the original, whatever the next try does
	if r.kept == nil {
		r.kept = &retained{}
	}
	k := r.kept
	k.line.add(&kept)
	k.bytes += int64(kept.Settled.Bytes)
	if k.retryAt == 0 {
		k.pause = max(k.pause, RetryFirst)
		k.retryAt = s.Now.Add(k.pause)
		r.timers.Add(r.source, k.retryAt)
	}
	return true
}

// RetryLocked puts the first letters in line again if it is time. settings are the source's
// current ones. next is when the others are tried; 0: there are none.
func (r *Retained) RetryLocked(s *Transition, settings *policy.Settings) (next deadline.Instant) {
	k := r.kept
	if k == nil {
		return 0
	}
	if k.line.n == 0 || k.retryAt > s.Now {
		return k.retryAt
	}
	k.pause = min(2*k.pause, retryLast)
	n := min(k.line.n, retryAtOnce)
	for i := range n {
		x := k.line.at(k.line.passed + uint64(i))
		k.bytes -= int64(x.Settled.Bytes)
		if now := settings.For(x.Settled.Reason); now.DeadLetters {
			x.Settings = now
		}
		r.letters.PostLocked(s, x)
	}
	k.line.remove(n)
	if k.retryAt = 0; k.line.n > 0 {
		k.retryAt = s.Now.Add(k.pause)
	}
	return k.retryAt
}

// RetrySoon lets the others follow a letter that went through.
func (r *Retained) RetrySoon(s *Transition) {
	r.letters.mu.Lock()
	defer r.letters.mu.Unlock()
	s.ReadClock()
	r.retrySoonLocked(s.Now)
}

// retrySoonLocked sets the timer to try them at once.
func (r *Retained) retrySoonLocked(now deadline.Instant) {
	if r.kept == nil {
		return
	}
	r.kept.pause = RetryFirst
	if r.kept.line.n > 0 {
		r.kept.retryAt = now
		r.timers.Add(r.source, now)
	}
}

// RetainedLetters are what a deleted source has retained.
type RetainedLetters struct{ line letterLine }

// CloseLocked takes all letters out, since the source is deleted. From then on none are kept.
func (r *Retained) CloseLocked() (left RetainedLetters) {
	if r.kept != nil {
		left.line = r.kept.line
	}
	r.kept, r.closed = nil, true
	return left
}

// SettleStep settles some of the letters, and reports whether there are more.
func (l *RetainedLetters) SettleStep(s *Transition, id uint64) (more bool) {
	n := min(l.line.n, queue.AtOnce)
	for i := range n {
		s.Settled = append(s.Settled, SettleRecord(id, &l.line.at(l.line.passed+uint64(i)).Settled))
	}
	l.line.remove(n)
	return l.line.n > 0
}

// Count is how many letters wait to be tried again.
func (r *Retained) Count() int {
	r.letters.mu.Lock()
	defer r.letters.mu.Unlock()
	return r.countLocked()
}

func (r *Retained) countLocked() int {
	n, _ := r.sizeLocked()
	return n
}

// exceedsLocked reports whether the queue would be above a limit with that many more messages. Letters count, too.
func (r *Retained) exceedsLocked(core *queue.Queue, messages int, bytes int64) bool {
	kept, size := r.sizeLocked()
	return core.Exceeds(messages+kept, bytes+size)
}

// sizeLocked is how many letters there are, and the octets of their messages.
func (r *Retained) sizeLocked() (n int, bytes int64) {
	if r.kept == nil {
		return 0, 0
	}
	return r.kept.line.n, r.kept.bytes
}

// appendDeliveredLocked appends those that a consumer has seen: in the next run they are back in
// the queue.
func (r *Retained) appendDeliveredLocked(id uint64, runs []store.Delivered) []store.Delivered {
	if r.kept == nil {
		return runs
	}
	return r.kept.line.appendDelivered(id, runs)
}
