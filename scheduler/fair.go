package scheduler

import (
	"container/heap"
	"context"
	"maps"
	"slices"
	"sync"

	"curfew/broker/deadline"
)

// Fair is a schedule for several tenants. Each has an Index of its own, and each Claim is a turn of one
// tenant: so the many shadows of one tenant that are due at once do not hold up the others. Create it
// with NewFair. It is otherwise as a Store is.
type Fair struct {
	tenantOf func(queue uint64) string

	mu      sync.Mutex
	tenants map[string]*tenant
	queues  map[uint64]*queueShadows // those with shadows
	waiting tenantHeap               // tenants with nothing due, by next
	due     []*tenant                // the others, in the order of their turns
}

var _ Store = (*Fair)(nil)

// tenant is guarded by Fair.mu, apart from its Index.
type tenant struct {
	*Index
	name  string
	next  deadline.Instant // lowest score; 0: it is empty
	place int              // in waiting
	isDue bool             // it is in due, not in waiting
}

// queueShadows remembers whose a queue is as long as it has shadows, since nobody may know it any more
// when these are removed.
type queueShadows struct {
	of *tenant
	n  int64
}

// fairStep is how many shadows are dealt with under one lock.
const fairStep = 256

// NewFair returns an empty schedule. tenantOf names the tenant of a queue; it is called with a lock
// held, and is asked once as long as the queue has shadows.
func NewFair(tenantOf func(queue uint64) string) *Fair {
	return &Fair{tenantOf: tenantOf, tenants: map[string]*tenant{}, queues: map[uint64]*queueShadows{}}
}

// Apply implements Store. It fails only for an invalid shadow, and then does nothing.
func (f *Fair) Apply(ctx context.Context, add, remove []deadline.Ref) error {
	if err := checkAll(add, remove); err != nil {
		return err
	}
	for run := range runs(add, refQueue) {
		if err := f.change(run[0].Queue, true, func(s *Index) error { return s.Apply(ctx, run, nil) }); err != nil {
			return err
		}
	}
	for run := range runs(remove, refQueue) {
		if err := f.change(run[0].Queue, false, func(s *Index) error { return s.Apply(ctx, nil, run) }); err != nil {
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
		if err := f.change(run[0].Queue, false, func(s *Index) error { return s.Settle(ctx, run, nil) }); err != nil {
			return err
		}
	}
	for run := range runs(later, func(l *Later) uint64 { return l.Queue }) {
		if err := f.change(run[0].Queue, false, func(s *Index) error { return s.Settle(ctx, nil, run) }); err != nil {
			return err
		}
	}
	return nil
}

func refQueue(r *deadline.Ref) uint64 { return r.Queue }

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

// change changes the shadows of one queue, and then puts its tenant where it belongs. Unless add is
// set it does nothing for a queue without shadows.
func (f *Fair) change(queue uint64, add bool, fn func(*Index) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[queue]
	if q == nil {
		if !add {
			return nil
		}
		q = &queueShadows{of: f.tenantLocked(f.tenantOf(queue))}
		f.queues[queue] = q
	}
	before := q.of.length()
	err := fn(q.of.Index)
	if q.n += q.of.length() - before; q.n == 0 {
		delete(f.queues, queue)
	}
	f.placeLocked(q.of)
	return err
}

// tenantLocked returns the tenant of that name, a new one if there is none.
func (f *Fair) tenantLocked(name string) *tenant {
	t := f.tenants[name]
	if t == nil {
		t = &tenant{Index: NewIndex(), name: name}
		f.tenants[name] = t
		heap.Push(&f.waiting, t)
	}
	return t
}

// placeLocked notes that the shadows of a tenant have changed. One whose turn comes stays in line.
func (f *Fair) placeLocked(t *tenant) {
	if t.isDue {
		return
	}
	if t.next = t.lowest(); t.next == 0 {
		heap.Remove(&f.waiting, t.place)
		delete(f.tenants, t.name)
		return
	}
	heap.Fix(&f.waiting, t.place)
}

// Claim implements Store for the tenant whose turn it is. next is <= until while any tenant
// has more to claim. It fails only for an invalid lease.
func (f *Fair) Claim(ctx context.Context, until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) (claimed []deadline.Ref, next deadline.Instant, err error) {
	if err := checkLease(until, leaseUntil); err != nil {
		return out, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.waiting) > 0 && f.waiting[0].next <= until {
		t := heap.Pop(&f.waiting).(*tenant)
		t.isDue = true
		f.due = append(f.due, t)
	}
	before := len(out)
	for range len(f.due) {
		t := f.due[0]
		f.due = f.due[1:]
		out, t.next, err = t.Index.Claim(ctx, until, max, leaseUntil, out)
		if t.next != 0 && t.next <= until {
			f.due = append(f.due, t)
		} else {
			t.isDue = false
			heap.Push(&f.waiting, t)
			f.placeLocked(t)
		}
		if err != nil || len(out) > before || max == 0 {
			break
		}
	}
	switch {
	case len(f.due) > 0:
		next = until
		for _, t := range f.due {
			next = min(next, t.next)
		}
	case len(f.waiting) > 0:
		next = f.waiting[0].next
	}
	return out, next, err
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

// Count is Index.Count over all tenants.
func (f *Fair) Count(until []deadline.Instant, out []int64) []int64 {
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
	for t := range maps.Values(f.tenants) {
		all = append(all, t.Index)
	}
	return slices.Clip(all)
}

// tenantHeap has the tenant with the lowest score at its front.
type tenantHeap []*tenant

func (h tenantHeap) Len() int           { return len(h) }
func (h tenantHeap) Less(i, j int) bool { return h[i].next < h[j].next }
func (h tenantHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}
func (h *tenantHeap) Push(x any) {
	t := x.(*tenant)
	t.place = len(*h)
	*h = append(*h, t)
}
func (h *tenantHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return t
}
