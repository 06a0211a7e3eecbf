package delivery

import (
	"errors"

	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Queue is one queue at work. It is made of parts, each a type in a file of its own, which
// share one lock (see the package's comment). Safe for concurrent use.
type Queue struct {
	messages
	Registered registered

	consumers consumers
	departure *Departure // of the last consumer that left; noDeparture: there is one
	flow      flow

	Locks    Locks
	Idle     Idle
	Letters  Letters
	Retained Retained
}

// registered is the declared queue that a Queue belongs to. Its methods are called with no lock held.
type registered interface {
	// CheckIdle is called when the queue's timer fires. It deletes the queue if it was idle for
	// too long, and reports whether it did.
	CheckIdle() (deleted bool)
	// LastConsumerGone deletes an auto-delete queue.
	LastConsumerGone()
}

// QueueOptions are what a queue is made from.
type QueueOptions struct {
	Env         *Env
	Registered  registered
	Identity    *Identity // of Registered; Init fills it
	ID          uint64    // incarnation: never used again, even if the name is
	VHost, Name string
	Lines       *Lines // of letters, of its virtual host
	Durable     bool   // it outlives a restart
	AutoDelete  bool
	Settings    *policy.Settings // never changed afterwards
}

// Init makes an empty queue of q.
func (q *Queue) Init(o QueueOptions) {
	q.env, q.Identity = o.Env, o.Identity
	q.ID, q.vhost, q.Name, q.Durable, q.Arguments = o.ID, o.VHost, o.Name, o.Durable, o.Settings
	q.core = queue.New(o.Settings.Core)
	q.settings.Store(q.Arguments)
	if q.Arguments.Shows&policy.ShowDeadline != 0 {
		q.enqueued = new(enqueueTimes)
	}
	q.Registered, q.autoDelete, q.timerIndex, q.departure = o.Registered, o.AutoDelete, deadline.NoTimer, &noDeparture
	q.consumers.q, q.Locks.q, q.flow.q, q.Idle.q = q, q, q, q
	q.Letters.Init(Origin{Identity: o.Identity, Lines: o.Lines}, &q.mu)
	q.Retained.Init(&q.Letters, &o.Env.Timers, q)
}

// finishLocked hands over what follows from the transition so far: messages that have left
// are put in line as letters or settled. It runs before the lock is released, so that the events
// and records of one message keep their order.
func (q *Queue) finishLocked(s *Transition, path deadline.Path) {
	if len(s.fx.Settled) > 0 {
		q.shrinkLaterLocked()
	}
	settings := q.Settings()
	s.touched += len(s.fx.Settled)
	for i := range s.fx.Settled {
		x, noticed := &s.fx.Settled[i], path
		if x.ExpiresAt != 0 && x.ExpiresAt <= s.Env.Clock.LastRun && x.Flags&queue.Redelivered != 0 && path != deadline.Manual { // whoever held it was the reason that it did not expire then
			noticed = deadline.Requeued
		}
		if q.enqueued != nil {
			q.enqueued.drop(x.Seq)
		}
		if (deadLettered(settings, x.Reason) || OwesReceipt(x)) && !s.dropping {
			letter := Letter{Settled: *x, Settings: settings.For(x.Reason), At: s.Now, Path: noticed, Queued: true}
			if x.Reason == queue.Rejected {
				letter.Why = s.why
			}
			q.Letters.PostLocked(s, &letter)
			s.notifyLeftLocked(&q.messages, x, path)
			continue
		}
		s.Settled = append(s.Settled, SettleRecord(q.ID, x))
		if x.Reason == queue.Expired {
			s.Env.Counters.ExpiredDropped.Add(1)
			s.recordDroppedLocked(&q.messages, x, noticed)
		}
		s.notifyLeftLocked(&q.messages, x, path)
	}
	q.flow.creditLocked()
	s.fx.Reset()
	s.FinishLocked(&q.Letters)
	s.dropping = false
}

// deadLettered reports whether a message that leaves for this reason is dead-lettered.
func deadLettered(settings *policy.Settings, r queue.Reason) bool {
	switch r {
	case queue.Expired:
		return settings.DeadLetters && !settings.DropsExpired
	case queue.Rejected, queue.MaxLength:
		return settings.DeadLetters
	case queue.DeliveryLimit:
		return settings.DeadLetters || settings.Names().Park != ""
	}
	return false
}

// OwesReceipt reports whether a message that left its queue may owe a receipt.
func OwesReceipt(settled *queue.Settled) bool {
	return settled.Reason == queue.Expired && settled.Flags&queue.Receipt != 0
}

// Why a queue was not deleted.
var (
	ErrInUse    = errors.New("in use")
	ErrNotEmpty = errors.New("not empty")
	ErrGone     = errors.New("deleted already")
)

// Holding is what a queue holds at one instant.
type Holding struct {
	Consumers int
	Messages  int // ready, unacked and waiting
	Unacked   int // of them
	Retained  int // letters of the queue that wait for another try
}

// Delete marks the queue as deleted and takes all that it holds out of it, unless veto, which is called under the queue's lock,
// returns an error; nil: nothing prevents it. It returns how many messages were ready or waited, the consumers, which have lost
// their queue, and what it held: that is gone for everybody, and has to be settled.
func (q *Queue) Delete(s *Transition, veto func(Holding) error) (ready int, orphans []*Consumer, held *Contents, err error) {
	q.lock(s)
	defer q.unlock(s, "delete")
	if q.deleted {
		return 0, nil, nil, ErrGone
	}
	if veto != nil {
		if err := veto(Holding{q.consumers.count, q.core.Len(), q.core.Unacked.Count, q.Retained.countLocked()}); err != nil {
			return 0, nil, nil, err
		}
	}
	ready, orphans = q.core.Len()-q.core.Unacked.Count, q.consumers.allLocked()
	q.deleted, q.consumers, q.Locks, q.enqueued = true, consumers{q: q}, Locks{q: q}, nil
	held = &Contents{q: q, messages: q.core.Clear(), retained: q.Retained.CloseLocked()}
	q.flow.endLocked()
	q.finishLocked(s, deadline.Lazy)
	return ready, orphans, held, nil
}

// Contents are the messages of a deleted queue. Nobody but the one who deleted it knows of them.
type Contents struct {
	q        *Queue
	messages *queue.Queue
	retained RetainedLetters
}

// Few reports whether they are settled in one step.
func (c *Contents) Few() bool { return c.messages.Len()+c.retained.line.n <= queue.AtOnce }

// Settle records that the messages have left, and releases them.
func (c *Contents) Settle() {
	inSteps(c.q, "delete", func(s *Transition) (more bool) { // of use to nobody else, since the queue is deleted
		left := c.messages.Sweep(&s.fx)
		return c.retained.SettleStep(s, c.q.ID) || left
	})
}

// inSteps takes one step after the other, each under the lock, until there is no more to do. If very
// many dead letters wait in the virtual host it helps to move them before it goes on.
func inSteps(q *Queue, what string, step func(*Transition) (more bool)) {
	for more := true; more; {
		s := q.env.Begin()
		more = q.locked(s, what, func() bool {
			left := step(s)
			q.finishLocked(s, deadline.Lazy)
			return left
		})
		if s.Done(); more {
			q.env.AwaitFeed()
		}
	}
}

// Purge drops the ready and the waiting messages and returns how many there were; purged ones are not
// dead-lettered. For everybody the queue is empty at once. Purge returns when the messages are
// settled, and as safe from coming back after a crash as the store's mode promises.
func (q *Queue) Purge() (n int) {
	s := q.env.Begin()
	defer s.Done()
	for begun, more := false, true; more; {
		more = q.locked(s, "purge", func() bool {
			if !begun {
				q.lastUsedAt = s.Now
			}
			if !begun && !q.core.Sweeping() { // unless another purge has to be finished first
				n, begun = q.core.Purge(), true
			}
			q.core.Sweep(&s.fx)
			q.finishLocked(s, deadline.Lazy)
			return !begun || q.core.Sweeping()
		})
		if begun && more {
			q.env.AwaitFeed()
		}
	}
	safe := make(chan struct{})
	q.env.Store.Commit(func(error) { close(safe) })
	<-safe
	return n
}

// Apply gives the queue new settings, which must never be changed afterwards. Messages above a
// limit that has become lower stay until Trim.
func (q *Queue) Apply(settings *policy.Settings) {
	q.mu.Lock()
	defer q.mu.Unlock()
	renew := settings.ExpiresMillis != q.Settings().ExpiresMillis
	q.settings.Store(settings)
	q.core.SetOptions(settings.Core)
	if renew {
		q.Idle.renewLocked()
	} else {
		q.Idle.settingsChangedLocked()
	}
	q.Retained.retrySoonLocked(q.env.Clock.Now()) // what is retained may go elsewhere now
}

// Trim drops the messages that are above the queue's limits, in steps, until the broker ends.
func (q *Queue) Trim() {
	over := false
	inSteps(q, "trim", func(s *Transition) (more bool) {
		select {
		case <-q.env.Quit: // the next use of the queue goes on
			over = true
		default:
		}
		return !over && !q.deleted && q.core.Trim(&s.fx)
	})
}

// serveLocked offers ready messages to the consumers, and then drops what is above the queue's limits. more: there is more to
// do than may be done under one lock.
func (q *Queue) serveLocked(s *Transition) (more bool) {
	if more = q.consumers.dispatchLocked(s); !more && q.Settings().Limited() {
		more = q.core.Trim(&s.fx)
	}
	q.finishLocked(s, deadline.Lazy)
	return more
}

// serve goes on where serveLocked has stopped. Whoever comes while another goroutine does so leaves it to that one.
func (q *Queue) serve(s *Transition) {
	for first, more := true, true; more; first = false {
		more = q.locked(s, "deliver", func() bool {
			if q.deleted || first && q.serving {
				return false
			}
			q.serving = q.serveLocked(s)
			return q.serving
		})
	}
}

// TimerIndex is the queue's index among the timers.
func (q *Queue) TimerIndex() *int32 { return &q.timerIndex }

// OnTimer does what is due in the queue and sets its next timer.
func (q *Queue) OnTimer() {
	if q.Registered.CheckIdle() {
		return
	}
	s := q.env.Hurry()
	defer s.Done()
	q.lock(s)
	defer q.unlock(s, "timer")
	if q.deleted {
		return
	}
	q.Locks.expireLocked(s)
	retryAt := q.Retained.RetryLocked(s, q.Settings())
	waiting := q.core.Waiting().Count
	wakeAt := q.core.Wake(s.Now, wakeAtOnce, &s.fx)
	s.touched += waiting - q.core.Waiting().Count
	q.finishLocked(s, deadline.Requeued)
	q.consumers.chooseActiveLocked()
	if q.serveLocked(s) && !q.serving { // the next step is the timers' too, in its turn
		q.env.Timers.Add(q, s.Now)
	}
	if at := q.Idle.deadlineLocked(); at != 0 {
		q.env.Timers.Add(q, at)
	}
	if retryAt != 0 {
		q.env.Timers.Add(q, retryAt)
	}
	if wakeAt != 0 {
		q.env.Timers.Add(q, max(wakeAt, s.Now)) // in its turn
	}
	q.Locks.againLocked(s)
}
