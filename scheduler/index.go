package scheduler

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"curfew/broker/deadline"
)

// Index is a schedule in memory. The zero value is an empty one.
type Index struct {
	mu sync.Mutex
	// A shadow is in waiting, where its score is its deadline, or in moved, where the
	// score may be any.
	waiting tree
	moved   moved
}

var _ Store = (*Index)(nil)

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
		s.putLocked(Later{Ref: shadow, At: shadow.Deadline})
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
	s.takeLocked(until, max, func(l Later) {
		out = append(out, l.Ref)
		s.moved.add(Later{Ref: l.Ref, At: leaseUntil})
	})
	return out, s.nextLocked(), nil
}

// takeLocked takes out shadows whose score is <= until, at most max, in order of score, deadline and seq.
func (s *Index) takeLocked(until deadline.Instant, max int, taken func(Later)) {
	for max > 0 {
		first, ok := s.moved.first()
		head, waits := s.waiting.first()
		switch {
		case !ok || first.At > until:
			s.waiting.pop(until, max, func(r deadline.Ref) { taken(Later{Ref: r, At: r.Deadline}) })
			return
		case waits && (head.Deadline < first.At || head.Deadline == first.At && head.Compare(first.Ref) < 0):
			s.waiting.pop(first.At, 1, func(r deadline.Ref) { taken(Later{Ref: r, At: r.Deadline}) })
			max--
		default:
			s.moved.remove(*s.moved.heap.At(0))
			taken(first)
			max--
		}
	}
}

// take is takeLocked into a list.
func (s *Index) take(until deadline.Instant, max int, out []Later) []Later {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takeLocked(until, max, func(l Later) { out = append(out, l) })
	return out
}

// put puts in shadows that are not there.
func (s *Index) put(all []Later) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range all {
		s.putLocked(l)
	}
}

func (s *Index) putLocked(l Later) {
	if l.At != l.Deadline || !s.waiting.queues.fits(l.Queue) {
		s.moved.add(l)
	} else {
		s.waiting.insert(l.Ref)
	}
}

// takeMoved takes over the claimed and put off shadows of another.
func (s *Index) takeMoved(of *Index) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pos := range of.moved.len() {
		s.moved.add(of.moved.at(*of.moved.heap.At(pos)).Later)
	}
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
