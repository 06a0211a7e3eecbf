package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// check returns the first broken invariant.
func (s *sorted) check() error {
	length := 0
	var last entry
	for i := range s.pages {
		p := &s.pages[i]
		if len(p.entries) == 0 || len(p.entries) > pageCap {
			return fmt.Errorf("page %d has %d entries", i, len(p.entries))
		}
		if i > 0 && (p.entries[0].before(p.low) || !last.before(p.low)) {
			return fmt.Errorf("page %d: %v before it, low %v, first %v", i, last, p.low, p.entries[0])
		}
		for _, e := range p.entries {
			if length++; length > 1 && !last.before(e) {
				return fmt.Errorf("%v before %v", last, e)
			}
			last = e
		}
	}
	if length != s.length {
		return fmt.Errorf("%d entries counted as %d", length, s.length)
	}
	return nil
}

// TestSortedLikeASet grows and shrinks lists by random insertions and removals in
// different orders, with invariants checked all along.
func TestSortedLikeASet(t *testing.T) {
	for name, draw := range map[string]func(rng *rand.Rand, i int) deadline.Ref{
		"dense": func(rng *rand.Rand, _ int) deadline.Ref {
			return deadline.Ref{Deadline: startAt + deadline.Instant(rng.Int64N(50)), Queue: rng.Uint64N(9), Seq: rng.Uint64N(100)}
		},
		"one deadline": func(rng *rand.Rand, _ int) deadline.Ref {
			return deadline.Ref{Deadline: startAt, Queue: 1, Seq: rng.Uint64N(20_000)}
		},
		"spread": func(rng *rand.Rand, _ int) deadline.Ref {
			return deadline.Ref{Deadline: 1 + deadline.Instant(rng.Int64N(MaxDeadline)), Queue: rng.Uint64(), Seq: 1}
		},
		"rising streams": func(_ *rand.Rand, i int) deadline.Ref {
			return deadline.Ref{Deadline: startAt + deadline.Instant(i) + deadline.Instant(i%7)<<38, Queue: uint64(i % 7), Seq: uint64(i)}
		},
		"falling": func(_ *rand.Rand, i int) deadline.Ref {
			return deadline.Ref{Deadline: startAt - deadline.Instant(i), Queue: 1, Seq: uint64(i)}
		},
	} {
		t.Run(name, func(t *testing.T) { sortedLikeASet(t, draw) })
	}
}

// has reports whether an entry is there.
func (s *sorted) has(e entry) bool {
	if s.length == 0 {
		return false
	}
	_, found := s.pages[s.find(e, s.gone)].search(e)
	return found
}

func entryOf(r deadline.Ref) entry { return entry{r.Deadline, r.Seq} }

// refs are some entries that come after one.
func (s *sorted) refs(after entry, most int) (list []deadline.Ref) {
	s.after(after, func(e entry) bool {
		list = append(list, deadline.Ref{Deadline: e.at, Queue: 1, Seq: e.seq})
		return len(list) < most
	})
	return list
}

func sortedLikeASet(t *testing.T, draw func(*rand.Rand, int) deadline.Ref) {
	rng := rand.New(rand.NewPCG(1, 2))
	var list sorted
	var known []deadline.Ref // all ever drawn
	set := map[deadline.Ref]bool{}
	for i := range 100_000 {
		growing := i/20_000%2 == 0
		if s := draw(rng, i); growing && rng.IntN(4) > 0 || len(known) == 0 {
			s.Queue = 1
			list.insert(entryOf(s))
			set[s], known = true, append(known, s)
		} else {
			s := known[rng.IntN(len(known))]
			require.Equal(t, set[s], list.has(entryOf(s)))
			some := []deadline.Ref{s, s}
			if rng.IntN(4) == 0 {
				some = append(some, list.refs(entryOf(s), 1+rng.IntN(10))...)
			}
			list.remove(some)
			for _, s := range some {
				require.False(t, list.has(entryOf(s)))
				delete(set, s)
			}
		}
		require.Equal(t, len(set), list.length)
		if i%5000 == 0 {
			require.NoError(t, list.check())
		}
	}
	popInOrder(t, &list, set)
}

// popInOrder empties a list from its beginning, a part of a page at a time.
func popInOrder(t *testing.T, list *sorted, set map[deadline.Ref]bool) {
	var want, got []deadline.Ref
	for s := range set {
		want = append(want, s)
	}
	slices.SortFunc(want, deadline.Ref.Compare)
	require.Equal(t, want[len(want)/3:], list.refs(entryOf(want[len(want)/3-1]), len(want)))
	for i := 0; list.length > 0; i++ {
		require.Equal(t, want[len(got)].Deadline, list.first())
		n := min(50, len(list.pages[0].entries))
		for _, e := range list.pages[0].entries[:n] {
			got = append(got, deadline.Ref{Deadline: e.at, Queue: 1, Seq: e.seq})
		}
		if list.cut(0, 0, n); i%100 == 0 {
			require.NoError(t, list.check())
		}
	}
	require.Equal(t, want, got)
	require.Empty(t, list.pages)
	require.EqualValues(t, never, list.first())
}

// Pages that removals thinned out are merged, so that memory follows the number of
// entries down.
func TestThinnedPagesAreMerged(t *testing.T) {
	var list sorted
	for i := range 100_000 {
		list.insert(entry{startAt + deadline.Instant(i), 1})
	}
	for i := range 100_000 {
		if i%100 != 0 {
			list.remove([]deadline.Ref{{Deadline: startAt + deadline.Instant(i), Seq: 1}})
		}
	}
	require.NoError(t, list.check())
	require.Equal(t, 1000, list.length)
	require.Less(t, len(list.pages), 1000/(pageCap/6))
}

// Deadlines that come in order leave full pages behind.
func TestStreamsFillPages(t *testing.T) {
	var list sorted
	for i := range 200_000 {
		list.insert(entry{startAt + deadline.Instant(i/100), uint64(i)})
	}
	require.Less(t, len(list.pages), 200_000/pageCap*11/10)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	s, ctx, i := NewIndex(nil), context.Background(), 0
	batch := make([]deadline.Ref, 100)
	var claimed []deadline.Ref
	turn := func() {
		for k := range batch {
			batch[k] = deadline.Ref{Deadline: startAt + deadline.Instant(i*7919%5000), Queue: uint64(i % 50), Seq: uint64(i)}
			i++
		}
		_ = s.Apply(ctx, batch, batch[:10])
		claimed, _, _ = s.Claim(ctx, startAt+5000, 90, startAt+10_000, claimed[:0])
		_ = s.Settle(ctx, claimed, nil)
	}
	_ = s.Apply(ctx, shadows(50_000), nil)
	for range 1000 {
		turn()
	}
	require.Less(t, testing.AllocsPerRun(1000, turn), 1.0)
}

func shadows(n int) []deadline.Ref {
	all := make([]deadline.Ref, n)
	for i := range all {
		all[i] = deadline.Ref{Deadline: startAt + 1e6 + deadline.Instant(i), Queue: 1, Seq: uint64(i)}
	}
	return all
}

// TestScanWhileTheStoreChanges: what stays in the store is named, whatever moves it.
func TestScanWhileTheStoreChanges(t *testing.T) {
	s, ctx := NewIndex(nil), context.Background()
	all := shadows(3*scanPage + 17)
	require.NoError(t, s.Apply(ctx, all, nil))
	_, _, err := s.Claim(ctx, startAt+1e7, 500, startAt+2e7, nil)
	require.NoError(t, err)
	seen, pages := map[deadline.Ref]int{}, 0
	require.NoError(t, s.Scan(ctx, func(page []deadline.Ref) error {
		for _, shadow := range page {
			seen[shadow]++
		}
		clear(page)
		pages++
		require.NoError(t, s.Apply(ctx, all[:400], nil)) // back from their lease
		_, _, err := s.Claim(ctx, startAt+1e7, 5000, startAt+2e7, nil)
		return err
	}))
	require.Len(t, seen, len(all))
	for shadow, n := range seen {
		require.Equal(t, 1, n, shadow)
	}
	require.Equal(t, 3, pages)
	ended, end := context.WithCancel(ctx)
	end()
	require.ErrorIs(t, s.Scan(ended, nil), context.Canceled)
}
