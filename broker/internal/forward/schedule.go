package forward

import (
	"slices"
	"sync"

	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/memory"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Schedule holds the delayed messages of one virtual host until they are due. Safe for
// concurrent use. mu is locked as a queue's lock is (package delivery), and functions whose
// names end in Locked are called with it held.
type Schedule struct {
	env *delivery.Env
	id  uint64 // incarnation, as a queue has one

	answer func(Answer) // answers a command; by any goroutine, must not block; nil: nobody does

	timerIndex int32 // guarded by the timers

	mu            sync.Mutex
	core          *queue.Queue // in the order of publishing; a message's deadline is when it is due
	effects       queue.Effects
	dues          queue.Dues     // stale: of messages that were cancelled, or have another time
	byExchange    map[string]int // messages
	names         names
	read          int // bytes of property lists in which names were read under the lock that is held
	deleted       bool
	lastActiveAt  deadline.Instant // when a transition last took the lock
	shrinkPending bool             // the shrinker looks at it later

	Letters  delivery.Letters
	Retained delivery.Retained
}

// settings are those of letters of delayed messages, which are not dead letters of any queue.
var settings = &policy.Settings{TTLMillis: -1}

// Init makes an empty schedule of d. name is used where a queue's name is needed; lines are the virtual host's lines of
// letters. answer answers a command, by any goroutine, and must not block.
func (d *Schedule) Init(env *delivery.Env, id uint64, name string, lines *delivery.Lines, answer func(Answer)) {
	d.env, d.id, d.timerIndex, d.byExchange, d.answer = env, id, deadline.NoTimer, map[string]int{}, answer
	d.names.init()
	d.core = queue.New(queue.Options{MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1})
	d.Letters.Init(delivery.Origin{Identity: &delivery.Identity{ID: id, Name: name}, Delayed: true, Lines: lines}, &d.mu)
	d.Retained.Init(&d.Letters, &env.DelayedTimers, d)
}

// ID is the incarnation of the schedule, by which the journal knows its messages.
func (d *Schedule) ID() uint64 { return d.id }

// lock takes the lock for a transition, and then reads the clock, since it may have had to wait.
func (d *Schedule) lock(s *delivery.Transition) {
	d.mu.Lock()
	s.ReadClock()
	d.lastActiveAt = s.Now
}

// Publish enters items in order; the deadline of each is when it is due. An item that belongs to a
// transfer is recorded with it.
func (d *Schedule) Publish(s *delivery.Transition, items []delivery.Item) {
	for some := range slices.Chunk(items, queue.AtOnce) {
		var commands []command // among some, read before the lock is taken
		for i := range some {
			if some[i].Command {
				commands = append(commands, commandOf(d.env.Store.View(store.Pos(some[i].Message.Pos))))
			}
		}
		for len(some) > 0 {
			some, commands = d.publishStep(s, some, commands)
		}
	}
}

// propertiesAtOnce is how many bytes of property lists are read under one lock, give or take one list: the
// name of a message is in its list, which may be long.
const propertiesAtOnce = 1 << 16

// publishStep enters the first of the items, and returns the others and their commands.
func (d *Schedule) publishStep(s *delivery.Transition, items []delivery.Item, commands []command) ([]delivery.Item, []command) {
	d.lock(s)
	defer d.mu.Unlock()
	for d.read = 0; len(items) > 0 && d.read < propertiesAtOnce; items = items[1:] {
		it := &items[0]
		if d.deleted {
			d.env.Store.Release(store.Pos(it.Message.Pos))
			continue
		}
		if it.Command {
			d.commandLocked(s, it, &commands[0])
			commands = commands[1:]
			continue
		}
		entered := d.enterLocked(it)
		s.Numbered = append(s.Numbered, delivery.Numbered{Publish: it.Number, Seq: queue.Seq(entered.Seq), Delayed: true})
		s.AddEnteredLocked(it, entered)
	}
	d.finishLocked(s)
	return items, commands
}

// enterLocked schedules an item, and returns the record of that.
func (d *Schedule) enterLocked(it *delivery.Item) store.Enqueue {
	m := it.Message
	seq := d.core.Publish(m, it.Priority)
	d.addLocked(queue.Due{At: m.ExpiresAt, Seq: seq}, store.Pos(m.Pos))
	return store.Enqueue{
		Queue: d.id, Seq: uint64(seq), Pos: store.Pos(m.Pos), ExpiresAt: m.ExpiresAt, Flags: uint8(m.Flags), Durable: m.Flags&queue.Durable != 0,
	}
}

// addLocked schedules a message that has just entered.
func (d *Schedule) addLocked(at queue.Due, pos store.Pos) {
	n, _, ok := d.nameLocked(uint64(pos))
	d.byExchange[string(n.exchange)]++
	if ok {
		d.names.add(n, at.Seq)
	}
	d.pushLocked(at)
}

// pushLocked adds an entry to the heap, and sets the timer if it is the first.
func (d *Schedule) pushLocked(at queue.Due) {
	d.dues.Push(at)
	if d.dues.First() == at {
		d.env.DelayedTimers.Add(d, at.At)
	}
}

// TimerIndex is the schedule's index among the timers.
func (d *Schedule) TimerIndex() *int32 { return &d.timerIndex }

// OnTimer puts due messages in line, at most queue.AtOnce and propertiesAtOnce under one lock, retries retained
// letters, and sets the next timer.
func (d *Schedule) OnTimer() {
	s := d.env.Hurry()
	defer s.Done()
	d.lock(s)
	defer d.mu.Unlock()
	for n, size := 0, 0; n < queue.AtOnce && size < propertiesAtOnce && d.dues.Len() > 0 && d.dues.First().At <= s.Now; n++ {
		x := d.dues.Pop()
		if d.core.Expire(s.Now, x.Seq, x.At, &d.effects).Outcome == deadline.Gone {
			d.dues.Stale--
			continue
		}
		left := d.effects.Settled[len(d.effects.Settled)-1]
		size += len(d.env.Store.View(store.Pos(left.Pos)).Properties)
	}
	retryAt := d.Retained.RetryLocked(s, settings)
	d.finishLocked(s)
	if retryAt != 0 {
		d.env.DelayedTimers.Add(d, retryAt)
	}
	if d.dues.Len() > 0 {
		d.env.DelayedTimers.Add(d, d.dues.First().At)
	}
}

// finishLocked hands on the messages that have left: those that are due go in line, the others are
// settled.
func (d *Schedule) finishLocked(s *delivery.Transition) {
	left := d.effects.Settled
	for i := range left {
		x := &left[i]
		d.forgetLocked(x)
		if x.Reason == queue.Expired {
			d.Letters.PostLocked(s, &delivery.Letter{Settled: *x, Settings: settings, At: s.Now, Path: deadline.Scheduled, Queued: true})
		} else {
			s.Settled = append(s.Settled, delivery.SettleRecord(d.id, x))
		}
	}
	if len(left) > 0 {
		d.shrinkLaterLocked()
	}
	d.effects.Reset()
	s.FinishLocked(&d.Letters)
}

// forgetLocked updates byExchange and names for a message that leaves.
func (d *Schedule) forgetLocked(x *queue.Settled) {
	if d.deleted {
		return
	}
	n, secret, ok := d.nameLocked(x.Pos)
	if count := d.byExchange[string(n.exchange)]; count > 1 {
		d.byExchange[string(n.exchange)] = count - 1
	} else {
		delete(d.byExchange, string(n.exchange))
	}
	r := Cancelled
	if x.Reason == queue.Expired {
		r = TooLate
	}
	if ok {
		d.names.drop(n, x.Seq, r)
	}
	if len(secret) > 0 {
		d.names.note(d.names.hash(name{exchange: n.exchange, id: []byte(idOf(x.Seq, secret))}), r)
	}
}

// Cancel drops a message; false if it is gone.
func (d *Schedule) Cancel(ref deadline.Ref) bool {
	s := d.env.Begin()
	defer s.Done()
	d.lock(s)
	defer d.mu.Unlock()
	if !d.core.Remove(queue.Seq(ref.Seq), ref.Deadline, &d.effects) {
		return false
	}
	d.finishLocked(s)
	d.dropCancelledLocked()
	return true
}

// dropCancelledLocked counts an entry of the heap whose message is gone or has another time. While
// there are many such entries it drops some.
func (d *Schedule) dropCancelledLocked() {
	d.dues.Drop(func(x queue.Due) bool {
		m, _, waits := d.core.Find(x.Seq)
		return waits && m.ExpiresAt == x.At
	})
}

// Delete settles all messages that wait or are retained, since the virtual host is deleted. Letters
// in line go on.
func (d *Schedule) Delete() {
	d.mu.Lock()
	d.deleted, d.dues, d.byExchange = true, queue.Dues{}, nil
	d.names.init()
	left, retained := d.core.Clear(), d.Retained.CloseLocked()
	d.env.DelayedTimers.Drop(d)
	d.mu.Unlock()
	for more := true; more; {
		more = d.settleStep(left, &retained)
	}
}

// settleStep settles some of what a deleted schedule held, and reports whether there is more.
func (d *Schedule) settleStep(left *queue.Queue, retained *delivery.RetainedLetters) (more bool) {
	s := d.env.Begin()
	defer s.Done()
	d.lock(s)
	defer d.mu.Unlock()
	more = left.Sweep(&d.effects)
	more = retained.SettleStep(s, d.id) || more
	d.finishLocked(s)
	return more
}

// Restore puts messages of the last run back in their places.
func (d *Schedule) Restore(r *store.RecoveredQueue) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range r.Entries {
		d.core.Restore(queue.Seq(e.Seq), queue.Message{
			Pos: uint64(e.Pos), ExpiresAt: e.ExpiresAt, Flags: queue.Flags(e.Flags),
			Bytes: uint32(len(d.env.Store.View(e.Pos).Body)),
		}, e.Deliveries)
		d.addLocked(queue.Due{At: e.ExpiresAt, Seq: queue.Seq(e.Seq)}, e.Pos)
	}
}

// Relocate implements store.Options.Relocate for the delayed messages.
func (d *Schedule) Relocate(seq queue.Seq, old, moved store.Pos) (store.Terms, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.core.Relocate(seq, uint64(old), uint64(moved)) {
		m, deliveries, _ := d.core.Find(seq)
		return store.Terms{ExpiresAt: m.ExpiresAt, Deliveries: deliveries, Flags: uint8(m.Flags)}, true
	}
	return d.Letters.RelocateLocked(seq, uint64(old), uint64(moved))
}

// shrinkLaterLocked adds a schedule that has become empty to the shrinker.
func (d *Schedule) shrinkLaterLocked() {
	if d.core.Len() == 0 && !d.shrinkPending {
		d.shrinkPending = true
		d.env.Shrinker.Add(d)
	}
}

// ShrinkIfIdle releases the memory that an empty schedule keeps for future messages, unless it was
// used recently, and reports whether it did.
func (d *Schedule) ShrinkIfIdle() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shrinkPending = false
	switch {
	case d.deleted || d.core.Len() > 0: // it is added again once it is empty
	case d.env.Clock.Now().Sub(d.lastActiveAt) < memory.ShrinkAfter:
		d.shrinkLaterLocked()
	default:
		d.core.Shrink()
		d.names.shrink()
		d.effects = queue.Effects{}
		return true
	}
	return false
}
