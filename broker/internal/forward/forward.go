package forward

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/topology"
	"curfew/broker/queue"
	"curfew/broker/store"

	"go.uber.org/zap"
)

const (
	// lettersHelp is how many letters may wait in a virtual host. Beyond that, a publisher or a
	// consumer that causes another one moves some of them itself, or waits until others have.
	lettersHelp = 1 << 16
	// heldFor is how long a letter waits that would take much memory while memory is low.
	heldFor = 100 * time.Millisecond
	// helpFor is the longest that a caller that causes letters helps or waits.
	helpFor = time.Second
)

// Forwarder moves the letters that nobody else moves: one goroutine takes turns, virtual host by
// virtual host, and within each queue by queue. So whatever one tenant's dead letters cause, another's
// wait for at most one turn of each virtual host. Expire and the timers of queues and delayed messages
// leave all letters to it. A publish, an acknowledgement and a get take a first turn themselves, so
// that their effects are seen at once and whoever causes a cost pays it.
type Forwarder struct {
	env       *delivery.Env
	log       *zap.Logger
	memoryLow func() bool
	drop      bool

	Counters Counters
	Turns    deadline.Longest // of Run

	wake chan struct{}

	mu   sync.Mutex      // leaf; guards the VHostLetters, too
	ring []*VHostLetters // with queues that have letters, in rotation
	held []*VHostLetters // with queues whose letters would take much memory
	hold *time.Timer     // until they are tried again

	awaited atomic.Bool   // somebody waits for
	turned  chan struct{} // the end of a turn; changed with mu held
}

// Options are what a Forwarder needs.
type Options struct {
	Env       *delivery.Env
	Log       *zap.Logger
	MemoryLow func() bool // if so, letters with many targets wait
	Drop      bool        // dead letters that are routed nowhere are dropped instead of parked
}

// Counters are totals since the start.
type Counters struct {
	DeadLettered            [queue.Reasons]atomic.Uint64
	Parked, Cycles, Bounded atomic.Uint64
	Unroutable              atomic.Uint64 // delayed messages that no queue was bound for when they were due
	Receipts                [receiptResults]atomic.Uint64
}

// Init must be called before any other method.
func (f *Forwarder) Init(o Options) {
	f.env, f.log, f.memoryLow, f.drop = o.Env, o.Log, o.MemoryLow, o.Drop
	f.wake, f.hold = make(chan struct{}, 1), time.NewTimer(time.Hour)
	f.hold.Stop()
}

// VHostLetters are the letters of one virtual host as the forwarder knows them. Guarded by the
// forwarder's mu.
type VHostLetters struct {
	VHost *topology.VHost // set before it is used; like the next three fields, not guarded
	f     *Forwarder
	lines delivery.Lines
	reply func(*store.Message) (direct bool, err error)

	sources []*delivery.Letters              // with letters, in rotation
	held    []*delivery.Letters              // whose letters wait for memory
	waits   map[*delivery.Letters]struct{}   // those of both
	begun   map[*delivery.Letters]letterMove // the first letters in line that a turn has given to some of their targets

	parkAgain atomic.Int64 // Unix µs: until then queueargs.UndeliverableQueue is not made; not guarded
}

// Init must be called before any other method. reply hands a receipt to the client that waits for it under its routing
// key, if that is a name for direct replies. Its error: no client waits.
func (l *VHostLetters) Init(f *Forwarder, reply func(*store.Message) (direct bool, err error)) {
	l.f, l.reply = f, reply
	l.waits, l.begun = map[*delivery.Letters]struct{}{}, map[*delivery.Letters]letterMove{}
	l.lines.First, l.lines.Later = l.first, l.add
}

// Lines returns the lines of letters of the virtual host.
func (l *VHostLetters) Lines() *delivery.Lines { return &l.lines }

// add puts queues with letters in the rotation, and wakes the forwarder.
func (l *VHostLetters) add(queues ...*delivery.Letters) {
	l.f.mu.Lock()
	for _, q := range queues {
		if _, already := l.waits[q]; !already {
			l.waits[q] = struct{}{}
			l.enlistLocked(q)
		}
	}
	l.f.mu.Unlock()
	select {
	case l.f.wake <- struct{}{}:
	default:
	}
}

func (l *VHostLetters) enlistLocked(q *delivery.Letters) {
	if len(l.sources) == 0 {
		l.f.ring = append(l.f.ring, l)
	}
	l.sources = append(l.sources, q)
}

// next is the queue whose turn it is, and its virtual host; nil if no letters wait.
func (f *Forwarder) next() (*VHostLetters, *delivery.Letters) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ring) == 0 {
		return nil, nil
	}
	l := f.ring[0]
	f.ring = f.ring[1:]
	q := l.shiftLocked()
	if len(l.sources) > 0 {
		f.ring = append(f.ring, l)
	}
	return l, q
}

// next is the queue whose turn it is in this virtual host; nil if no letters wait.
func (l *VHostLetters) next() *delivery.Letters {
	f := l.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(l.sources) == 0 {
		return nil
	}
	q := l.shiftLocked()
	if len(l.sources) == 0 {
		f.ring = slices.DeleteFunc(f.ring, func(x *VHostLetters) bool { return x == l })
	}
	return q
}

// shiftLocked takes the first of the queues with letters.
func (l *VHostLetters) shiftLocked() *delivery.Letters {
	q := l.sources[0]
	l.sources[0] = nil
	if l.sources = l.sources[1:]; len(l.sources) == 0 {
		l.sources = nil
	}
	delete(l.waits, q)
	return q
}

// waitForMemory makes a queue's next turn wait for memory.
func (l *VHostLetters) waitForMemory(q *delivery.Letters) {
	f := l.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, already := l.waits[q]; already {
		return
	}
	l.waits[q] = struct{}{}
	if len(l.held) == 0 {
		f.held = append(f.held, l)
	}
	if l.held = append(l.held, q); len(f.held) == 1 && len(l.held) == 1 {
		f.hold.Reset(heldFor)
	}
}

// retryHeld puts the queues that waited for memory back in the rotation.
func (f *Forwarder) retryHeld() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.held {
		for _, q := range l.held {
			l.enlistLocked(q)
		}
		l.held = nil
	}
	f.held = nil
}

// resume returns the move of the first letter in line, which an earlier turn has begun.
func (l *VHostLetters) resume(q *delivery.Letters) letterMove {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	x := l.begun[q]
	delete(l.begun, q)
	return x
}

// setAside keeps a move that goes on in a later turn.
func (l *VHostLetters) setAside(q *delivery.Letters, x letterMove) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.begun[q] = x
}

// turns is the pool of unused turns.
var turns = sync.Pool{New: func() any { return new(turn) }}

// turn takes a turn from the pool, for a transition.
func (f *Forwarder) turn(s *delivery.Transition) *turn {
	t := turns.Get().(*turn)
	t.f, t.s = f, s
	return t
}

// end gives a turn back to the pool.
func (t *turn) end() {
	t.dropReferences()
	t.f, t.s, t.letters = nil, nil, nil
	if cap(t.targets.List) <= delivery.TransitionKeep {
		turns.Put(t)
	}
}

// Run takes turns until quit is closed.
func (f *Forwarder) Run(quit <-chan struct{}) {
	t := f.turn(f.env.Begin())
	defer f.hold.Stop()
	for {
		l, q := f.next()
		if q == nil {
			t.dropReferences() // what it remembers would keep deleted queues
			select {
			case <-f.wake:
			case <-f.hold.C:
				f.retryHeld()
			case <-quit:
				return
			}
			continue
		}
		began := f.env.Clock.Now()
		l.takeTurn(t, q)
		f.Turns.Add(began, f.env.Clock.Now().Sub(began))
		select {
		case <-f.hold.C:
			f.retryHeld()
		case <-quit:
			return
		default:
		}
	}
}

// first takes a first turn for a transition that has posted letters, and leaves the rest to the
// forwarder. If too many letters wait in the virtual host, it helps.
func (l *VHostLetters) first(s *delivery.Transition) {
	t := l.f.turn(s)
	defer t.end()
	var rest []*delivery.Letters
	b := budget{turnLetters, turnEntries}
	for i := 0; i < len(s.Sources) && b.letters > 0 && b.entries > 0; i++ { // a turn may add to them
		q := s.Sources[i]
		if q == nil {
			continue
		}
		for j := i; j < len(s.Sources); j++ {
			if s.Sources[j] == q { // one turn covers all that it has posted before
				s.Sources[j] = nil
			}
		}
		if more, held := t.run(l, q, &b); more || held {
			rest = append(rest, q)
		}
	}
	s.Sources = append(slices.DeleteFunc(s.Sources, func(q *delivery.Letters) bool { return q == nil }), rest...)
	l.handOn(s)
	if l.lines.Waiting.Load() > lettersHelp {
		l.help(t)
	}
}

// help moves letters of the virtual host until fewer wait, or waits while others move them. It
// gives up after a while, or soon if the number does not fall: an acknowledgement must not be
// blocked, since it makes room.
func (l *VHostLetters) help(t *turn) {
	giveUp, until := time.NewTimer(heldFor), time.Now().Add(helpFor)
	defer giveUp.Stop()
	for last := l.lines.Waiting.Load(); time.Now().Before(until); {
		turned := l.f.await()
		switch n := l.lines.Waiting.Load(); {
		case n <= lettersHelp:
			return
		case n < last:
			giveUp.Reset(heldFor)
			last = n
		}
		if q := l.next(); q != nil {
			l.takeTurn(t, q)
			continue
		}
		select {
		case <-turned:
		case <-giveUp.C:
			return
		}
	}
}

// takeTurn takes one turn for q. The letters that remain, and those that the turn caused, get their
// turn later, after a while if they wait for memory.
func (l *VHostLetters) takeTurn(t *turn, q *delivery.Letters) {
	more, held := t.run(l, q, &budget{turnLetters, turnEntries})
	if held {
		l.waitForMemory(q)
	} else if more {
		l.add(q)
	}
	l.handOn(t.s)
}

// handOn leaves the letters that a transition has posted to the forwarder. All letters that a turn
// causes are in its own virtual host.
func (l *VHostLetters) handOn(s *delivery.Transition) {
	if len(s.Sources) == 0 {
		return
	}
	l.add(s.Sources...)
	clear(s.Sources)
	s.Sources = s.Sources[:0]
}

// passed counts letters of the virtual host that have arrived.
func (l *VHostLetters) passed(n int) {
	f := l.f
	l.lines.Waiting.Add(-int64(n))
	f.env.Waiting.Add(-int64(n))
	if !f.awaited.Load() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.awaited.CompareAndSwap(true, false) {
		close(f.turned)
	}
}

// await returns a channel that is closed when the next turn has ended.
func (f *Forwarder) await() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.awaited.Load() {
		f.turned = make(chan struct{})
		f.awaited.Store(true)
	}
	return f.turned
}

// Wait waits until no message that has left a queue is on its way to another. Its error is ctx's.
func (f *Forwarder) Wait(ctx context.Context) error {
	for {
		turned := f.await()
		if f.env.Waiting.Load() == 0 {
			return nil
		}
		select {
		case <-turned:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
