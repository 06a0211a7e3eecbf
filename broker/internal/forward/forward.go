package forward

import (
	"context"
	"runtime"
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

// Forwarder moves the letters that nobody else moves. Each virtual host with letters has a goroutine, which exists for
// as long as it has some, and takes turns queue by queue. So whatever one tenant's dead letters cost, another's share
// nothing with them but the processor, and that is yielded after each turn. Expire and the timers of queues and delayed
// messages leave all letters to it. A publish, an acknowledgement and a get take a first turn themselves, so
// that their effects are seen at once and whoever causes a cost pays it.
type Forwarder struct {
	env       *delivery.Env
	log       *zap.Logger
	memoryLow func() bool
	drop      bool
	now       func() time.Time

	Counters Counters
	Turns    deadline.Longest // how long they took

	mu      sync.Mutex // leaf; guards the VHostLetters, too
	running bool
	early   []*VHostLetters // with letters before Run
	workers sync.WaitGroup  // added to with mu held, while running

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
	f.env, f.log, f.memoryLow, f.drop, f.now = o.Env, o.Log, o.MemoryLow, o.Drop, time.Now
}

// VHostLetters are the letters of one virtual host as the forwarder knows them. Guarded by the
// forwarder's mu.
type VHostLetters struct {
	VHost *topology.VHost // set before it is used; like the next three fields, not guarded
	f     *Forwarder
	lines delivery.Lines
	reply func(*store.Message) (direct bool, err error)

	working bool                             // its goroutine exists
	newly   []*delivery.Letters              // with letters, in rotation: that have had no turn since they had none
	sources []*delivery.Letters              // with letters, in rotation: that had more than their last turn moved
	turns   uint64                           // since there were no letters; every second one is of newly: few letters wait neither for many, nor for many queues with many
	held    []*delivery.Letters              // whose letters wait for memory, until a timer ends
	waits   map[*delivery.Letters]struct{}   // all of these
	begun   map[*delivery.Letters]letterMove // the first letters in line that a turn has given to some of their targets

	parkAgain atomic.Int64 // Unix µs: until then policy.UndeliverableQueue is not made; not guarded
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

// add puts queues with letters in the rotation.
func (l *VHostLetters) add(queues ...*delivery.Letters) { l.rotate(&l.newly, queues...) }

// rotate puts queues at the end of a list in rotation, unless they wait.
func (l *VHostLetters) rotate(list *[]*delivery.Letters, queues ...*delivery.Letters) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	for _, q := range queues {
		if _, already := l.waits[q]; !already {
			l.waits[q] = struct{}{}
			*list = append(*list, q)
		}
	}
	l.workLocked()
}

// workLocked starts the goroutine of the virtual host if there is work for it.
func (l *VHostLetters) workLocked() {
	f := l.f
	switch {
	case l.working || len(l.sources)+len(l.newly) == 0:
	case f.running:
		l.working = true
		f.workers.Go(l.work)
	default:
		f.early = append(f.early, l)
	}
}

// work takes turns until no letters of the virtual host are left, or the forwarder ends.
func (l *VHostLetters) work() {
	s := l.f.env.Begin()
	defer s.Done()
	t := l.f.turn(s)
	defer t.end()
	for l.takeTurn(t, true) {
		runtime.Gosched()
	}
}

// next is the queue whose turn it is in this virtual host, nil if no letters wait, and how many letters the turn may move. works: the goroutine of
// the virtual host asks, which ends if that is nil, as it is when the forwarder ends.
func (l *VHostLetters) next(works bool) (q *delivery.Letters, most int) {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	if !works || l.f.running {
		most = min(turnLetters, max(turnFewest, roundLetters/max(1, len(l.waits))))
		q = l.shiftLocked()
	}
	if works {
		l.working = q != nil
	}
	return q, most
}

// shiftLocked takes the next of the queues with letters; nil: there is none.
func (l *VHostLetters) shiftLocked() *delivery.Letters {
	if len(l.newly)+len(l.sources) == 0 {
		l.turns = 0
		return nil
	}
	list := &l.sources
	if l.turns++; len(l.newly) > 0 && (len(l.sources) == 0 || l.turns%2 == 0) {
		list = &l.newly
	}
	q := (*list)[0]
	(*list)[0] = nil
	if *list = (*list)[1:]; len(*list) == 0 {
		*list = nil
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
	if l.held = append(l.held, q); len(l.held) == 1 {
		time.AfterFunc(heldFor, l.retryHeld)
	}
}

// retryHeld puts the queues that waited for memory back in the rotation.
func (l *VHostLetters) retryHeld() {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.sources = append(l.sources, l.held...)
	l.held = nil
	l.workLocked()
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

// Run lets the goroutines of the virtual hosts work until quit is closed, and returns when they have ended.
func (f *Forwarder) Run(quit <-chan struct{}) {
	f.mu.Lock()
	f.running = true
	for _, l := range f.early {
		l.workLocked()
	}
	f.early = nil
	f.mu.Unlock()
	<-quit
	f.mu.Lock()
	f.running = false
	f.mu.Unlock()
	f.workers.Wait()
}

// first takes a first turn for a transition that has posted letters, and leaves the rest to the
// forwarder. If too many letters wait in the virtual host, it helps.
func (l *VHostLetters) first(s *delivery.Transition) {
	t := l.f.turn(s)
	defer t.end()
	var rest []*delivery.Letters
	b := l.f.budget(turnLetters)
	defer b.end()
	for i := 0; i < len(s.Sources) && b.left(); i++ { // a turn may add to them
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
		if l.takeTurn(t, false) {
			continue
		}
		select {
		case <-turned:
		case <-giveUp.C:
			return
		}
	}
}

// takeTurn takes the next turn, if letters wait. Those that remain, and those that the turn caused, get their
// turn later, after a while if they wait for memory. works: see next.
func (l *VHostLetters) takeTurn(t *turn, works bool) bool {
	q, most := l.next(works)
	if q == nil {
		return false
	}
	b := l.f.budget(most)
	more, held := t.run(l, q, &b)
	b.end()
	if held {
		l.waitForMemory(q)
	} else if more {
		l.rotate(&l.sources, q)
	}
	l.handOn(t.s)
	return true
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
