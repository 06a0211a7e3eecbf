package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"curfew/broker/deadline"
)

// Index is a schedule in memory. Create it with NewIndex.
type Index struct {
	mu sync.Mutex
	// A shadow is in waiting, where its score is its deadline, or in moved, where the
	// score may be any.
	waiting tree
	moved   moved
}

var _ Store = (*Index)(nil)

// NewIndex returns an empty one.
func NewIndex() *Index { return &Index{} }

// Apply implements Store. It fails only for an invalid shadow, and then
// does nothing.
func (s *Index) Apply(_ context.Context, add, remove []deadline.Ref) error {
	if err := checkAll(add, remove); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, shadow := range add {
		if place, ok := s.moved.get(shadow); ok {
			s.moved.remove(place)
		}
		if s.waiting.queues.fits(shadow.Queue) {
			s.waiting.insert(shadow)
		} else {
			s.moved.add(Later{Ref: shadow, At: shadow.Deadline})
		}
	}
	for len(remove) > 0 {
		remove = remove[s.dropLocked(remove):]
	}
	return nil
}

// Claim implements Store. It fails only for an invalid lease.
func (s *Index) Claim(_ context.Context, until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) (claimed []deadline.Ref, next deadline.Instant, err error) {
	if err := checkLease(until, leaseUntil); err != nil {
		return out, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for left := max; left > 0; {
		before := len(out)
		if out = s.claimMovedLocked(until, leaseUntil, out); len(out) == before {
			out = s.claimWaitingLocked(until, left, leaseUntil, out)
		}
		if len(out) == before {
			break
		}
		left -= len(out) - before
	}
	return out, s.nextLocked(), nil
}

// claimMovedLocked claims the first of those moved if it is due and before all that wait.
func (s *Index) claimMovedLocked(until, leaseUntil deadline.Instant, out []deadline.Ref) []deadline.Ref {
	first, ok := s.moved.first()
	if !ok || first.At > until {
		return out
	}
	if head, ok := s.waiting.first(); ok && (head.Deadline < first.At || head.Deadline == first.At && head.Compare(first.Ref) < 0) {
		return out
	}
	s.moved.rescore(*s.moved.heap.At(0), leaseUntil)
	return append(out, first.Ref)
}

// claimWaitingLocked claims those that wait, up to the first of those moved.
func (s *Index) claimWaitingLocked(until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) []deadline.Ref {
	if first, ok := s.moved.first(); ok && first.At <= until {
		until, max = first.At, 1
	}
	before := len(out)
	out = s.waiting.pop(until, max, out)
	for _, shadow := range out[before:] {
		s.moved.add(Later{Ref: shadow, At: leaseUntil})
	}
	return out
}

// nextLocked is lowest with the lock held.
func (s *Index) nextLocked() (at deadline.Instant) {
	if head, ok := s.waiting.first(); ok {
		at = head.Deadline
	}
	if first, ok := s.moved.first(); ok && (at == 0 || first.At < at) {
		at = first.At
	}
	return at
}

// First returns the earliest deadline of the shadows whose score is their deadline; 0 if there
// are none. It leaves out shadows that were claimed or put off.
func (s *Index) First() deadline.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	head, _ := s.waiting.first()
	return head.Deadline
}

// Settle implements Store. It fails only for an invalid shadow or instant,
// and then does nothing.
func (s *Index) Settle(_ context.Context, done []deadline.Ref, later []Later) error {
	if err := checkSettle(done, later); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range slices.Backward(done) { // what was claimed together is at the end of the heap, in order
		s.dropLocked(done[i : i+1])
	}
	for _, l := range later {
		if place, ok := s.moved.get(l.Ref); ok {
			s.moved.rescore(place, l.At)
		} else if s.waiting.remove([]deadline.Ref{l.Ref}) > 0 {
			s.moved.add(l)
		}
	}
	return nil
}

// dropLocked removes the first of some shadows, if it is stored, and those after it that cost
// no more work. It returns how many it has dealt with.
func (s *Index) dropLocked(some []deadline.Ref) int {
	if place, ok := s.moved.get(some[0]); ok {
		s.moved.remove(place)
		return 1
	}
	return max(1, s.waiting.remove(some))
}

// Len implements Store. It never fails.
func (s *Index) Len(context.Context) (int64, error) { return s.length(), nil }

func (s *Index) length() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(s.waiting.length + s.moved.len())
}

// lowest is the lowest score, 0 when the store is empty.
func (s *Index) lowest() deadline.Instant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nextLocked()
}

func checkLease(until, leaseUntil deadline.Instant) error {
	if leaseUntil <= until {
		return fmt.Errorf("scheduler: claim until %d with a lease that ends at %d", until, leaseUntil)
	}
	return CheckInstant(leaseUntil)
}

func checkSettle(done []deadline.Ref, later []Later) error {
	if err := checkAll(done); err != nil {
		return err
	}
	for _, l := range later {
		if err := CheckInstant(l.At); err != nil {
			return err
		}
	}
	return nil
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
