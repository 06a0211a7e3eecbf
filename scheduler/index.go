package scheduler

import (
	"context"
	"fmt"
	"math"
	"sync"

	"curfew/broker/deadline"
)

// Index is a schedule in memory for several tenants. Each Claim is a turn of one tenant, and the turns within it go round that tenant's queues: so the
// many shadows that one tenant or queue has due at once do not hold up those of the others. Create it with NewIndex.
type Index struct {
	tenantOf func(queue uint64) string

	mu      sync.Mutex
	tenants map[string]*tenant
	queues  map[uint64]*queue // those with shadows, and those that are held
	spare   []*queue          // that have no shadows, for reuse; at most spareMax
	line    *line[*tenant]
	moves   moves
	note    func(Later, int) // moves.note
	length  int
	until   deadline.Instant // of the last Claim
}

var _ Store = (*Index)(nil)

type tenant struct {
	place
	name   string
	line   *line[*queue]
	queues int
}

const (
	// step is how many shadows are dealt with under one lock.
	step = 256
	// turn is how many shadows of a queue are claimed in its turn. Where thousands of queues have more due, these are fewer, down to turnFewest: so
	// that a round of their turns takes round shadows, about, which fire within some 50 ms.
	turn, turnFewest, round = 64, 8, 1 << 14
	// spareMax queues are kept for reuse, with some 10 KiB at most: those that had little room.
	spareMax, spareRoom = 256, 64

	never = deadline.Instant(math.MaxInt64)
)

// NewIndex returns an empty schedule. tenantOf names the tenant of a queue; it is called with a lock held, and is asked once as long as the queue has
// shadows, since nobody may know it any more when these are removed. nil: there is one tenant.
func NewIndex(tenantOf func(queue uint64) string) *Index {
	if tenantOf == nil {
		tenantOf = func(uint64) string { return "" }
	}
	x := &Index{tenantOf: tenantOf, tenants: map[string]*tenant{}, queues: map[uint64]*queue{}, line: newLine[*tenant](), moves: moves{places: map[deadline.Ref]int32{}}}
	x.note = x.moves.note
	return x
}

// Apply implements Store. It fails only for an invalid shadow, and then does nothing.
func (x *Index) Apply(_ context.Context, add, remove []deadline.Ref) error {
	if err := checkAll(add, remove); err != nil {
		return err
	}
	for run := range runs(add, refQueue) {
		x.change(run[0].Queue, true, func(q *queue) { q.add(&x.moves, run) })
	}
	for run := range runs(remove, refQueue) {
		x.change(run[0].Queue, false, func(q *queue) { q.remove(&x.moves, run) })
	}
	return nil
}

// Settle implements Store. It fails only for an invalid shadow or instant, and then does nothing.
func (x *Index) Settle(_ context.Context, done []deadline.Ref, later []Later) error {
	if err := checkAll(done); err != nil {
		return err
	}
	for _, l := range later {
		if err := CheckInstant(l.At); err != nil {
			return err
		}
	}
	for run := range runs(done, refQueue) {
		x.change(run[0].Queue, false, func(q *queue) { q.remove(&x.moves, run) })
	}
	for run := range runs(later, func(l *Later) uint64 { return l.Queue }) {
		x.change(run[0].Queue, false, func(q *queue) { q.putOff(&x.moves, run) })
	}
	return nil
}

func refQueue(r *deadline.Ref) uint64 { return r.Queue }

// runs yields parts of a list that are about one queue each, of up to step.
func runs[T any](all []T, queue func(*T) uint64) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for from := 0; from < len(all); {
			end := from + 1
			for end < len(all) && end-from < step && queue(&all[end]) == queue(&all[from]) {
				end++
			}
			if !yield(all[from:end]) {
				return
			}
			from = end
		}
	}
}

// change changes the shadows of a queue, and then puts it where it belongs. A queue without shadows is made only if adds.
func (x *Index) change(id uint64, adds bool, change func(*queue)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	q := x.queues[id]
	if q == nil && !adds {
		return
	}
	if q == nil {
		name := x.tenantOf(id)
		t := x.tenants[name]
		if t == nil {
			t = &tenant{place: place{at: -1}, name: name, line: newLine[*queue]()}
			x.tenants[name] = t
		}
		if last := len(x.spare) - 1; last >= 0 {
			q, x.spare[last] = x.spare[last], nil
			q.place, x.spare = place{at: -1}, x.spare[:last]
		} else {
			q = &queue{place: place{at: -1}, moved: deadline.Heap[Later]{Before: Later.before, Moved: x.note}}
		}
		q.id, q.of = id, t
		x.queues[id] = q
		t.queues++
	}
	before := q.len()
	change(q)
	x.length += q.len() - before
	part := waits
	if q.held {
		part = held
	}
	t := q.of
	t.line.put(q, q.lowest(), part)
	x.line.put(t, t.line.next(), waits)
	if q.len() == 0 && !q.held {
		delete(x.queues, id)
		if t.queues--; t.queues == 0 {
			delete(x.tenants, t.name)
		}
		if q.of = nil; len(x.spare) < spareMax && cap(q.moved.Items)+cap(q.waiting.pages) <= spareRoom {
			x.spare = append(x.spare, q)
		}
	}
}

// Hold keeps Claim from taking shadows of a queue, until it is called again with false: somebody is about to ask about some that were claimed, and
// the others come after those.
func (x *Index) Hold(id uint64, held bool) { x.change(id, held, func(q *queue) { q.held = held }) }

// Claim implements Store for the tenant whose turn it is. next is <= until while any tenant has more to claim; it is 0, too, if all queues with shadows
// are held. It fails only for an invalid lease.
func (x *Index) Claim(_ context.Context, until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) (claimed []deadline.Ref, next deadline.Instant, err error) {
	if leaseUntil <= until {
		return out, 0, fmt.Errorf("scheduler: claim until %d with a lease that ends at %d", until, leaseUntil)
	}
	if err := CheckInstant(leaseUntil); err != nil {
		return out, 0, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if until < x.until { // some of what was due may not be
		x.line.back()
		for _, t := range x.tenants {
			t.line.back()
			x.line.put(t, t.line.next(), waits)
		}
	}
	x.until = until
	if max > 0 { // otherwise nobody has a turn
		out = x.claimLocked(until, len(out)+max, leaseUntil, out)
	}
	if next = x.line.next(); next == never {
		next = 0
	}
	return out, next, nil
}

// claimLocked adds shadows of one tenant to out, up to most in all.
func (x *Index) claimLocked(until deadline.Instant, most int, leaseUntil deadline.Instant, out []deadline.Ref) []deadline.Ref {
	t, ok := x.line.turn(until)
	if !ok {
		return out
	}
	each := min(turn, max(turnFewest, round/max(1, len(t.line.parts[due].Items))))
	for len(out) < most {
		q, ok := t.line.turn(until)
		if !ok {
			break
		}
		out = q.claim(until, min(each, most-len(out)), leaseUntil, out)
		t.line.served(q, q.lowest())
	}
	x.line.served(t, t.line.next())
	return out
}

// Len implements Store. It never fails.
func (x *Index) Len(context.Context) (int64, error) { return x.Length(), nil }

// Length is Len.
func (x *Index) Length() int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return int64(x.length)
}

func checkAll(lists ...[]deadline.Ref) error {
	for _, list := range lists {
		for _, shadow := range list {
			if err := CheckInstant(shadow.Deadline); err != nil {
				return err
			}
		}
	}
	return nil
}
