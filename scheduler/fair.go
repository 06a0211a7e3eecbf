package scheduler

import (
	"context"
	"math"
	"slices"
	"sync"

	"curfew/broker/deadline"
)

// Fair is a schedule for several tenants. Each has an Index of its own, and each Claim is a turn of one
// tenant: so the many shadows of one tenant that are due at once do not hold up the others. When more of
// a tenant is due than one Claim takes, the turns go round its queues, too. Create it with NewFair. It is
// otherwise as a Store is.
type Fair struct {
	tenantOf func(queue uint64) string

	mu      sync.Mutex
	tenants map[string]*tenant
	queues  map[uint64]*queueShadows // those with shadows
	waiting deadline.Heap[*tenant]   // tenants with nothing due, by next
	due     []*tenant                // the others, in the order of their turns
	dealt   []Later
}

var _ Store = (*Fair)(nil)

// tenant is guarded by Fair.mu, apart from its Index.
type tenant struct {
	*Index
	name  string
	next  deadline.Instant // lowest score that may be claimed, or never
	place int              // in waiting
	isDue bool             // it is in due, not in waiting

	behind bool            // the last Claim left more that is due
	split  int             // queues with an Index of their own
	held   int             // see Hold
	turns  []*queueShadows // those of them whose turn comes
}

// queueShadows remembers whose a queue is as long as it has shadows, since nobody may know it any more
// when these are removed.
type queueShadows struct {
	of *tenant
	n  int64 // its shadows, wherever they are
	// split has those that are due and were set apart for the turns of the tenant's queues, in the order that they had. The others are in the tenant's
	// Index; no shadow is in both. nil: none are.
	split *Index
	turns bool // it is in the tenant's turns
	held  bool // see Hold
}

const (
	// fairStep is how many shadows are dealt with under one lock.
	fairStep = 256
	// fairTurn is how many shadows of a queue are claimed in its turn, where a tenant is behind, and fairDeal how many of those that are due a Claim
	// sets apart by queue before that. To do so is much cheaper than to expire them: what has become due behind them is soon seen.
	fairTurn, fairDeal = 64, 2048
	// maxSplit is how many queues of a tenant have shadows set apart at a time, some 3 KiB each: the others wait in the tenant's Index.
	maxSplit = 4096

	never = deadline.Instant(math.MaxInt64)
)

// NewFair returns an empty schedule. tenantOf names the tenant of a queue; it is called with a lock
// held, and is asked once as long as the queue has shadows.
func NewFair(tenantOf func(queue uint64) string) *Fair {
	return &Fair{tenantOf: tenantOf, tenants: map[string]*tenant{}, queues: map[uint64]*queueShadows{}, waiting: deadline.Heap[*tenant]{
		Before: func(a, b *tenant) bool { return a.next < b.next },
		Moved:  func(t *tenant, place int) { t.place = place },
	}}
}

// Apply implements Store. It fails only for an invalid shadow, and then does nothing.
func (f *Fair) Apply(ctx context.Context, add, remove []deadline.Ref) error {
	if err := checkAll(add, remove); err != nil {
		return err
	}
	for run := range runs(add, refQueue) {
		add := func(s *Index) error { return s.Apply(ctx, run, nil) }
		if err := f.change(run[0].Queue, add, func(s *Index) error { return s.Apply(ctx, nil, run) }); err != nil {
			return err
		}
	}
	for run := range runs(remove, refQueue) {
		if err := f.change(run[0].Queue, nil, func(s *Index) error { return s.Apply(ctx, nil, run) }); err != nil {
			return err
		}
	}
	return nil
}

// Settle implements Store. It fails only for an invalid shadow or instant, and then does
// nothing.
func (f *Fair) Settle(ctx context.Context, done []deadline.Ref, later []Later) error {
	if err := checkSettle(done, later); err != nil {
		return err
	}
	for run := range runs(done, refQueue) {
		if err := f.change(run[0].Queue, nil, func(s *Index) error { return s.Settle(ctx, run, nil) }); err != nil {
			return err
		}
	}
	for run := range runs(later, laterQueue) {
		if err := f.change(run[0].Queue, nil, func(s *Index) error { return s.Settle(ctx, nil, run) }); err != nil {
			return err
		}
	}
	return nil
}

func refQueue(r *deadline.Ref) uint64 { return r.Queue }

func laterQueue(l *Later) uint64 { return l.Queue }

// runs yields parts of a list that are about one queue each, of up to fairStep.
func runs[T any](all []T, queue func(*T) uint64) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for from := 0; from < len(all); {
			end := from + 1
			for end < len(all) && end-from < fairStep && queue(&all[end]) == queue(&all[from]) {
				end++
			}
			if !yield(all[from:end]) {
				return
			}
			from = end
		}
	}
}

// change changes the shadows of one queue, and then puts its tenant where it belongs. What add adds is not in the Index that the queue may have of its own,
// where only rest is called; without add, rest is called for the tenant's Index, too. Without add it does nothing for a queue without shadows.
func (f *Fair) change(queue uint64, add, rest func(*Index) error) (err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[queue]
	if q == nil {
		if add == nil {
			return nil
		}
		q = f.queueLocked(queue)
	}
	before := q.of.length()
	if q.split != nil {
		before := q.split.length()
		err = rest(q.split)
		q.n += q.split.length() - before
	}
	if add == nil {
		add = rest
	}
	if err == nil {
		err = add(q.of.Index)
	}
	q.n += q.of.length() - before
	f.trimLocked(queue, q)
	f.placeLocked(q.of)
	return err
}

// queueLocked returns what is known of a queue.
func (f *Fair) queueLocked(queue uint64) *queueShadows {
	q := f.queues[queue]
	if q == nil {
		q = &queueShadows{of: f.tenantLocked(f.tenantOf(queue))}
		f.queues[queue] = q
	}
	return q
}

// trimLocked forgets a queue of which nothing is left.
func (f *Fair) trimLocked(queue uint64, q *queueShadows) {
	if q.n == 0 && q.split != nil {
		q.split, q.of.split = nil, q.of.split-1
	}
	if q.n == 0 && !q.held {
		delete(f.queues, queue)
	}
}

// Hold keeps Claim from taking shadows of a queue, until it is called again with false: somebody is about to ask about some that were claimed, and
// the others come after those.
func (f *Fair) Hold(queue uint64, held bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[queue]
	switch {
	case held:
		if q = f.queueLocked(queue); !q.held {
			q.held, q.of.held = true, q.of.held+1
		}
	case q != nil && q.held:
		q.held, q.of.held = false, q.of.held-1
		f.trimLocked(queue, q)
		q.takesTurns()
		f.placeLocked(q.of)
	}
}

// takesTurns puts a queue at the end of the turns if it has an Index of its own and is not held.
func (q *queueShadows) takesTurns() {
	if q.split != nil && !q.held && !q.turns {
		q.turns, q.of.turns = true, append(q.of.turns, q)
	}
}

// tenantLocked returns the tenant of that name, a new one if there is none.
func (f *Fair) tenantLocked(name string) *tenant {
	t := f.tenants[name]
	if t == nil {
		t = &tenant{Index: &Index{}, name: name, next: never}
		f.tenants[name] = t
		f.waiting.Push(t)
	}
	return t
}

// lowest is the lowest score of those that may be claimed, or one that is no later than until; never if there are none.
func (t *tenant) lowest(until deadline.Instant) (at deadline.Instant) {
	if at = t.Index.lowest(); at == 0 {
		at = never
	}
	for _, q := range t.turns {
		if at <= until {
			break
		}
		if q.split != nil && !q.held {
			at = min(at, q.split.lowest())
		}
	}
	return at
}

// placeLocked notes that the shadows of a tenant have changed. One whose turn comes stays in line.
func (f *Fair) placeLocked(t *tenant) {
	if t.isDue {
		return
	}
	if t.next = t.lowest(0); t.next == never && t.split+t.held == 0 {
		f.waiting.Remove(t.place)
		delete(f.tenants, t.name)
		return
	}
	f.waiting.Fix(t.place)
}

// Claim implements Store for the tenant whose turn it is. next is <= until while any tenant
// has more to claim; it is 0, too, if all queues with shadows are held. It fails only for an invalid lease.
func (f *Fair) Claim(ctx context.Context, until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) (claimed []deadline.Ref, next deadline.Instant, err error) {
	if err := checkLease(until, leaseUntil); err != nil {
		return out, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting.Items) > 0 && f.waiting.Items[0].next <= until {
		t := f.waiting.Remove(0)
		t.isDue = true
		f.due = append(f.due, t)
	}
	before := len(out)
	for range len(f.due) {
		t := f.due[0]
		f.due = f.due[1:]
		out = f.claimLocked(ctx, t, until, max, leaseUntil, out)
		if t.next = t.lowest(until); t.next <= until {
			f.due = append(f.due, t)
		} else {
			t.isDue = false
			f.waiting.Push(t)
			f.placeLocked(t)
		}
		if len(out) > before || max == 0 {
			break
		}
	}
	switch {
	case len(f.due) > 0:
		next = until
		for _, t := range f.due {
			next = min(next, t.next)
		}
	case len(f.waiting.Items) > 0 && f.waiting.Items[0].next != never:
		next = f.waiting.Items[0].next
	}
	return out, next, nil
}

// claimLocked claims shadows of one tenant.
func (f *Fair) claimLocked(ctx context.Context, t *tenant, until deadline.Instant, most int, leaseUntil deadline.Instant, out []deadline.Ref) []deadline.Ref {
	if !t.behind && t.split+t.held == 0 {
		out, next, _ := t.Claim(ctx, until, most, leaseUntil, out) // it fails for its lease alone, which is right
		t.behind = most > 0 && next != 0 && next <= until
		return out
	}
	if most == 0 {
		return out
	}
	before := len(out)
	f.dealt = t.take(until, fairDeal, f.dealt[:0])
	t.behind = len(f.dealt) == fairDeal
	left := f.dealt
	for run := range runs(f.dealt, laterQueue) {
		q := f.queues[run[0].Queue]
		if q.split == nil && !q.held {
			n := min(len(run), fairTurn, most-most/2-(len(out)-before))
			for i := range run[:n] {
				out = append(out, run[i].Ref)
				run[i].At = leaseUntil
			}
			t.put(run[:n])
			run, left = run[n:], left[n:]
		}
		if len(run) > 0 {
			if q.split == nil && t.split >= maxSplit {
				break
			}
			q.splitOff(run)
			left = left[len(run):]
		}
	}
	t.put(left)
	for idle := 0; idle < len(t.turns) && len(out)-before < most; idle++ {
		q := t.turns[0]
		t.turns, q.turns = t.turns[1:], false
		if q.held || q.split == nil {
			continue
		}
		claimed, next, _ := q.split.Claim(ctx, until, min(fairTurn, most-(len(out)-before)), leaseUntil, out)
		if len(claimed) > len(out) {
			out, idle = claimed, -1
		}
		if next > until && q.split.waiting.length == 0 { // what is left has been claimed, or is not due
			t.takeMoved(q.split)
			q.split, t.split = nil, t.split-1
		}
		q.takesTurns()
	}
	return out
}

// splitOff puts shadows of the queue, which are in no Index, into its own.
func (q *queueShadows) splitOff(run []Later) {
	if q.split == nil {
		q.split, q.of.split = &Index{}, q.of.split+1
	}
	q.split.put(run)
	q.takesTurns()
}

// Len implements Store. It never fails.
func (f *Fair) Len(context.Context) (n int64, err error) {
	for _, s := range f.stores() {
		n += s.length()
	}
	return n, nil
}

// First returns the earliest deadline of the shadows whose score is their deadline; 0 if there
// are none. It leaves out shadows that were claimed or put off.
func (f *Fair) First() (first deadline.Instant) {
	for _, s := range f.stores() {
		if at := s.First(); at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	return first
}

// PendingBefore is Index.Count over all tenants.
func (f *Fair) PendingBefore(until []deadline.Instant, out []int64) []int64 {
	from := len(out)
	out = append(out, make([]int64, len(until))...)
	var one []int64
	for _, s := range f.stores() {
		one = s.Count(until, one[:0])
		for i, n := range one {
			out[from+i] += n
		}
	}
	return out
}

// Scan is Index.Scan over all tenants, one after the other.
func (f *Fair) Scan(ctx context.Context, fn func(page []deadline.Ref) error) error {
	for _, s := range f.stores() {
		if err := s.Scan(ctx, fn); err != nil {
			return err
		}
	}
	return nil
}

func (f *Fair) stores() (all []*Index) {
	f.mu.Lock()
	defer f.mu.Unlock()
	split := 0
	for _, t := range f.tenants {
		all, split = append(all, t.Index), split+t.split
	}
	for _, q := range f.queues {
		if split == 0 {
			break
		}
		if q.split != nil {
			all, split = append(all, q.split), split-1
		}
	}
	return slices.Clip(all)
}
