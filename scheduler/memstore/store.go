package memstore

import (
	"context"
	"slices"
	"sync"

	"curfew/scheduler"
)

// Store is a schedule in memory. Create it with New.
type Store struct {
	mu sync.Mutex
	m  map[scheduler.Shadow]int64
}

var _ scheduler.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{m: map[scheduler.Shadow]int64{}} }

// Apply implements scheduler.Store.
func (s *Store) Apply(_ context.Context, add, remove []scheduler.Shadow) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range add {
		if err := a.Check(); err != nil {
			return err
		}
		s.m[a] = a.Deadline
	}
	for _, r := range remove {
		delete(s.m, r)
	}
	return nil
}

// Claim implements scheduler.Store.
func (s *Store) Claim(_ context.Context, until int64, max int, leaseUntil int64, out []scheduler.Shadow) ([]scheduler.Shadow, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var due []scheduler.Later
	for sh, at := range s.m {
		if at <= until {
			due = append(due, scheduler.Later{Shadow: sh, At: at})
		}
	}
	slices.SortFunc(due, func(a, b scheduler.Later) int {
		if a.At != b.At {
			return int(a.At - b.At)
		}
		return a.Compare(b.Shadow)
	})
	for i, d := range due {
		if i == max {
			break
		}
		s.m[d.Shadow] = leaseUntil
		out = append(out, d.Shadow)
	}
	next := int64(0)
	for _, at := range s.m {
		if next == 0 || at < next {
			next = at
		}
	}
	return out, next, nil
}

// Settle implements scheduler.Store.
func (s *Store) Settle(_ context.Context, done []scheduler.Shadow, later []scheduler.Later) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range done {
		delete(s.m, d)
	}
	for _, l := range later {
		if _, ok := s.m[l.Shadow]; ok {
			s.m[l.Shadow] = l.At
		}
	}
	return nil
}

// Has says whether a shadow is in the store, claimed or not.
func (s *Store) Has(shadow scheduler.Shadow) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.m[shadow]
	return ok
}

// Scan names every shadow, each once, in pages that fn may change but not keep.
// Shadows added or removed meanwhile may or may not be among them. It ends with
// fn's first error, or that of ctx.
func (s *Store) Scan(ctx context.Context, fn func(page []scheduler.Shadow) error) error {
	s.mu.Lock()
	var page []scheduler.Shadow
	for sh := range s.m {
		page = append(page, sh)
	}
	s.mu.Unlock()
	return fn(page)
}

// Len implements scheduler.Store.
func (s *Store) Len(context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int64(len(s.m)), nil
}

// Close drops everything.
func (s *Store) Close() error { return nil }
