package broker

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"time"
)

// turns shares the processors among clients whose work keeps one busy for long: publishes that are
// costly to route (ErrCostly), and publishers whose consumers fall behind. Go has no priorities for
// goroutines. So such work is done in turns, of which no more run at a time than there are
// processors but one; that one is left for everything else: deadlines, acks, cheap publishes.
//
// Whose virtual host has used the least time comes first; in it, whose connection has. One that
// comes back after a break does not save up for it: it begins where the others are.
type turns struct {
	mu      sync.Mutex // leaf
	running int
	clock   time.Duration // what the virtual host whose turn began last had used by then
	waiting []*turn
}

// share is what a virtual host has used of the processors in turns. Guarded by turns.mu.
type share struct{ used, clock time.Duration } // clock: as turns.clock, of its connections

// turn is the turn of one connection.
type turn struct {
	of    *share
	used  time.Duration // guarded by turns.mu
	ready chan struct{} // closed when it may begin

	// Its goroutine's:
	held   bool
	costly bool // for what is costly, which may not be done in other turns
	began  time.Time
}

// most is how many turns may run at a time.
func (t *turns) most() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// begin waits until x may begin; false: done was closed before.
func (t *turns) begin(x *turn, done <-chan struct{}) bool {
	if ready := t.enter(x); ready != nil {
		select {
		case <-ready:
		case <-done:
			if t.leave(x) {
				return false
			}
		}
	}
	x.held, x.began = true, time.Now()
	return true
}

// enter begins a turn and returns nil, or what is closed when it may begin.
func (t *turns) enter(x *turn) (ready chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	x.of.used, x.used = max(x.of.used, t.clock), max(x.used, x.of.clock)
	if t.running < t.most() {
		t.beginLocked(x)
		return nil
	}
	x.ready = make(chan struct{})
	t.waiting = append(t.waiting, x)
	return x.ready
}

// leave gives up waiting; false: the turn has begun.
func (t *turns) leave(x *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.waiting, x)
	if i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	return i >= 0
}

func (t *turns) beginLocked(x *turn) {
	t.running++
	t.clock, x.of.clock = x.of.used, x.used
}

// end ends a turn, and begins those that may follow.
func (t *turns) end(x *turn) {
	took := time.Since(x.began)
	x.held, x.costly = false, false
	t.mu.Lock()
	defer t.mu.Unlock()
	x.of.used += took
	x.used += took
	for t.running--; len(t.waiting) > 0 && t.running < t.most(); {
		next := slices.MinFunc(t.waiting, func(a, b *turn) int {
			return cmp.Or(cmp.Compare(a.of.used, b.of.used), cmp.Compare(a.used, b.used))
		})
		i := slices.Index(t.waiting, next)
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.beginLocked(next)
		close(next.ready)
	}
}

// BeginTurn waits for a turn: a costly one for a publish that Publisher.Add has refused with
// ErrCostly, another before more is published while consumers fall behind (Pacing.Behind). Until EndTurn
// nothing may be waited for. False: done was closed before, and there is no turn.
func (r *Rights) BeginTurn(costly bool, done <-chan struct{}) bool {
	ok := r.turn.held || r.b.turns.begin(&r.turn, done)
	r.turn.costly = ok && costly
	return ok
}

// EndTurn ends the turn, if there is one.
func (r *Rights) EndTurn() {
	if r.turn.held {
		r.b.turns.end(&r.turn)
	}
}
