package scheduler

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// check returns the first broken invariant of a tree.
func (t *tree) check() error {
	length, entries := 0, map[uint32]int{}
	var last deadline.Ref
	if len(t.lows) != len(t.nodes) {
		return fmt.Errorf("%d lows of %d nodes", len(t.lows), len(t.nodes))
	}
	for i, n := range t.nodes {
		before := length
		if len(n.pages) == 0 || len(n.low) != len(n.pages) || t.lows[i] != n.low[0] {
			return fmt.Errorf("node %d has %d pages, low %v, noted %v", i, len(n.pages), n.low[0], t.lows[i])
		}
		for j, p := range n.pages {
			if p.n == 0 {
				return fmt.Errorf("page %d.%d is empty", i, j)
			}
			first := i == 0 && j == 0
			if s := p.shadow(0, &t.queues); !first && (n.low[j].Compare(s) > 0 || n.low[j].Compare(last) <= 0) {
				return fmt.Errorf("page %d.%d: %v before it, low %v, first %v", i, j, last, n.low[j], s)
			}
			for k := range p.len() {
				s := p.shadow(k, &t.queues)
				if last.Compare(s) >= 0 {
					return fmt.Errorf("%v before %v", last, s)
				}
				last = s
				entries[p.queue(k)]++
			}
			length += p.len()
		}
		if n.count != length-before {
			return fmt.Errorf("node %d has %d entries, counted as %d", i, length-before, n.count)
		}
		for j, p := range n.pages[len(n.pages):cap(n.pages)] {
			if p != nil {
				return fmt.Errorf("node %d keeps page %d", i, len(n.pages)+j)
			}
		}
	}
	if length != t.length {
		return fmt.Errorf("%d entries counted as %d", length, t.length)
	}
	return t.queues.check(entries)
}

func (q *queueNumbers) check(entries map[uint32]int) error {
	if len(q.number) != len(entries) || len(q.number)+len(q.free) != len(q.slots) {
		return fmt.Errorf("%d queues known, %d have entries, %d free, %d slots", len(q.number), len(entries), len(q.free), len(q.slots))
	}
	for number, n := range entries {
		if slot := q.slots[number]; slot.entries != n || q.number[slot.id] != number {
			return fmt.Errorf("queue %d has %d entries, counted as %d", slot.id, n, slot.entries)
		}
	}
	return nil
}

// check returns the first broken invariant of the moved ones.
func (m *moved) check() error {
	if len(m.index) != m.len() || m.len()+m.free.Len() != m.slots.Len() {
		return fmt.Errorf("%d indexed, %d in the heap, %d free, %d slots", len(m.index), m.len(), m.free.Len(), m.slots.Len())
	}
	for pos := range m.len() {
		place := *m.heap.At(pos)
		s := m.at(place)
		if int(s.pos) != pos || m.index[s.Ref] != place {
			return fmt.Errorf("place %d stands at %d, noted %d, indexed %d", place, pos, s.pos, m.index[s.Ref])
		}
		if pos > 0 && m.less(place, *m.heap.At((pos - 1) / 4)) {
			return fmt.Errorf("position %d is less than its parent", pos)
		}
	}
	return nil
}

func TestPageSize(t *testing.T) {
	require.EqualValues(t, 2048, unsafe.Sizeof(page{}), "a size class of the allocator")
}

// TestTreeLikeASet grows and shrinks trees by random insertions and removals in
// different orders, with invariants checked all along.
func TestTreeLikeASet(t *testing.T) {
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
		t.Run(name, func(t *testing.T) { treeLikeASet(t, draw) })
	}
}

// has reports whether the tree holds a shadow.
func (t *tree) has(s deadline.Ref) bool {
	if t.length == 0 {
		return false
	}
	at := t.find(s, t.gone)
	_, found := t.nodes[at.node].pages[at.page].search(s, &t.queues)
	return found
}

func treeLikeASet(t *testing.T, draw func(*rand.Rand, int) deadline.Ref) {
	rng := rand.New(rand.NewPCG(1, 2))
	var tr tree
	var known []deadline.Ref // all ever drawn
	set := map[deadline.Ref]bool{}
	for i := range 100_000 {
		growing := i/20_000%2 == 0
		if s := draw(rng, i); growing && rng.IntN(4) > 0 || len(known) == 0 {
			require.Equal(t, !set[s], tr.insert(s))
			set[s], known = true, append(known, s)
		} else {
			s := known[rng.IntN(len(known))]
			require.Equal(t, set[s], tr.has(s))
			some := []deadline.Ref{s, s}
			if rng.IntN(4) == 0 {
				some = tr.after(s, 1+rng.IntN(10), some[:1])
			}
			n := tr.remove(some)
			require.Equal(t, set[s], n > 0)
			require.False(t, tr.has(s))
			for i, other := range some[1:] {
				require.Equal(t, other != s && i+1 >= n, tr.has(other))
			}
			for _, s := range some[:n] {
				delete(set, s)
			}
		}
		if i%5000 == 0 {
			require.NoError(t, tr.check())
		}
	}
	popInOrder(t, &tr, set)
}

// popInOrder empties a tree by pop, a part of a page at a time.
func popInOrder(t *testing.T, tr *tree, set map[deadline.Ref]bool) {
	var want, got []deadline.Ref
	for s := range set {
		want = append(want, s)
	}
	slices.SortFunc(want, deadline.Ref.Compare)
	require.Equal(t, want[len(want)/3:], tr.after(want[len(want)/3-1], len(want), nil))
	for _, until := range []deadline.Instant{0, want[0].Deadline - 1, want[len(want)/2].Deadline, MaxDeadline} {
		for before := -1; len(got) > before; {
			before = len(got)
			tr.pop(until, 50, func(r deadline.Ref) { got = append(got, r) })
		}
		require.NoError(t, tr.check())
		if len(got) < len(want) {
			require.Greater(t, want[len(got)].Deadline, until)
		}
	}
	require.Equal(t, want, got)
	require.Empty(t, tr.nodes)
	require.LessOrEqual(t, len(tr.spare), spareMax)
}

// Pages that removals thinned out are merged, so that memory follows the number of
// entries down.
func TestThinnedPagesAreMerged(t *testing.T) {
	var tr tree
	for i := range 100_000 {
		tr.insert(deadline.Ref{Deadline: startAt + deadline.Instant(i), Queue: 1, Seq: 1})
	}
	for i := range 100_000 {
		if i%100 != 0 {
			tr.remove([]deadline.Ref{{Deadline: startAt + deadline.Instant(i), Queue: 1, Seq: 1}})
		}
	}
	require.NoError(t, tr.check())
	pages := 0
	for _, n := range tr.nodes {
		pages += len(n.pages)
	}
	require.Equal(t, 1000, tr.length)
	require.Less(t, pages, 1000/(pageCap/6))
}

// Deadlines that come in order leave full pages behind, also of several queues with
// a TTL each.
func TestStreamsFillPages(t *testing.T) {
	var tr tree
	for i := range 200_000 {
		ttl := deadline.Instant(i%10) * 3_600_000
		tr.insert(deadline.Ref{Deadline: startAt + deadline.Instant(i/100) + ttl, Queue: uint64(i % 10), Seq: uint64(i)})
	}
	pages := 0
	for _, n := range tr.nodes {
		pages += len(n.pages)
	}
	require.Less(t, pages, 200_000/pageCap*11/10)
}

func TestMovedLikeAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var m moved
	scores := map[deadline.Ref]deadline.Instant{}
	for i := range 20_000 {
		s := deadline.Ref{Deadline: startAt + deadline.Instant(rng.Int64N(300)), Queue: 1, Seq: 1}
		at := startAt + deadline.Instant(rng.Int64N(50))
		place, ok := m.get(s)
		require.Equal(t, scores[s] != 0, ok)
		switch {
		case !ok:
			m.add(Later{Ref: s, At: at})
			scores[s] = at
		case rng.IntN(3) == 0:
			m.remove(place)
			delete(scores, s)
		default:
			m.rescore(place, at)
			scores[s] = at
		}
		if i%100 == 0 {
			require.NoError(t, m.check())
		}
	}
	for last := (Later{}); m.len() > 0; {
		first, _ := m.first()
		require.Equal(t, scores[first.Ref], first.At)
		require.True(t, last.At < first.At || last.At == first.At && last.Compare(first.Ref) < 0)
		m.remove(*m.heap.At(0))
		last = first
	}
	require.Empty(t, m.index)
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	s, ctx, i := &Index{}, context.Background(), 0
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
	s, ctx := &Index{}, context.Background()
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

// TestMoreQueuesThanNumbers: the shadows of queues that there are no numbers for are kept all the same.
func TestMoreQueuesThanNumbers(t *testing.T) {
	ctx, s := context.Background(), &Index{}
	all := []deadline.Ref{{Deadline: 3, Queue: 1, Seq: 1}, {Deadline: 2, Queue: 2, Seq: 1}, {Deadline: 1, Queue: 3, Seq: 1}, {Deadline: 4, Queue: 1, Seq: 2}}
	require.NoError(t, s.Apply(ctx, all[:2], nil))
	slots := make([]queueNumber, maxNumbers) // all given
	copy(slots, s.waiting.queues.slots)
	s.waiting.queues.slots = slots
	require.NoError(t, s.Apply(ctx, all[2:], nil))
	require.NoError(t, s.Apply(ctx, all, nil), "again")
	n, err := s.Len(ctx)
	require.NoError(t, err)
	require.EqualValues(t, len(all), n)
	claimed, next, err := s.Claim(ctx, 3, 10, 9, nil)
	require.NoError(t, err)
	require.Equal(t, []deadline.Ref{all[2], all[1], all[0]}, claimed)
	require.EqualValues(t, 4, next)
	require.NoError(t, s.Settle(ctx, claimed, nil))
	require.EqualValues(t, 1, s.length())
}
