package scheduler_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// startAt is an instant of the kind deadlines have, Unix µs.
const startAt = 1_795_217_348_123_456

// lease is the span claims in the suite lease for, µs.
const lease = 10_000

// suite puts a kind of Store through its tests. open returns an empty one, and closes it
// when the test ends.
func suite(t *testing.T, open func(t *testing.T) scheduler.Store) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(fixture{t, open(t)}) })
	}
	t.Run("like a model", func(t *testing.T) { likeModel(t, open) })
}

var cases = []struct {
	name string
	run  func(f fixture)
}{
	{"empty", empty},
	{"claims in order and never early", claimsInOrder},
	{"equal deadlines of a queue in order of seq", equalDeadlines},
	{"equal deadlines of many queues", manyQueues},
	{"claims at most max", claimsAtMost},
	{"appends to out and keeps no slice", slicesAreTheCallers},
	{"a lease ends", leaseEnds},
	{"settled", settled},
	{"later", later},
	{"apply is idempotent", idempotent},
	{"apply resets a claimed score", resets},
	{"removed is not claimed", removed},
	{"removed and added again", addedAgain},
	{"removed by the thousand", removedMany},
	{"deadlines far away and long past", farAndPast},
	{"invalid instants are refused", invalid},
	{"a lease must outlast the claim", shortLease},
	{"concurrent claimers", concurrent},
}

// fixture is a Store whose calls must succeed.
type fixture struct {
	*testing.T
	store scheduler.Store
}

func (f fixture) apply(add, remove []deadline.Ref) {
	f.Helper()
	require.NoError(f, f.store.Apply(context.Background(), add, remove))
}

func (f fixture) claim(until deadline.Instant, max int) (claimed []deadline.Ref, next deadline.Instant) {
	f.Helper()
	claimed, next, err := f.store.Claim(context.Background(), until, max, until+lease, nil)
	require.NoError(f, err)
	return claimed, next
}

// claimAll claims all that is due. A store may claim less than it is asked for, but then says that more is due.
func (f fixture) claimAll(until deadline.Instant) (all []deadline.Ref) {
	f.Helper()
	for next := until; next != 0 && next <= until; {
		var some []deadline.Ref
		some, next = f.claim(until, 10_000)
		require.NotEmpty(f, some)
		all = append(all, some...)
	}
	return all
}

func (f fixture) settle(done []deadline.Ref, later ...scheduler.Later) {
	f.Helper()
	require.NoError(f, f.store.Settle(context.Background(), done, later))
}

func (f fixture) len() int64 {
	f.Helper()
	n, err := f.store.Len(context.Background())
	require.NoError(f, err)
	return n
}

// row returns n shadows of a queue, one every µs from startAt on.
func row(queue uint64, n int) []deadline.Ref {
	shadows := make([]deadline.Ref, n)
	for i := range shadows {
		shadows[i] = deadline.Ref{Deadline: startAt + deadline.Instant(i), Queue: queue, Seq: uint64(i)}
	}
	return shadows
}

func shuffled(shadows []deadline.Ref) []deadline.Ref {
	shadows = slices.Clone(shadows)
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(shadows), func(i, k int) { shadows[i], shadows[k] = shadows[k], shadows[i] })
	return shadows
}

func empty(f fixture) {
	claimed, next := f.claim(startAt, 10)
	require.Empty(f, claimed)
	require.Zero(f, next)
	require.Zero(f, f.len())
	f.apply(nil, nil)
	f.settle(nil)
	f.settle(row(1, 2), scheduler.Later{Ref: row(2, 1)[0], At: startAt})
	require.Zero(f, f.len())
}

func claimsInOrder(f fixture) {
	all := row(1, 10)
	f.apply(shuffled(all), nil)
	claimed, next := f.claim(startAt-1, 100)
	require.Empty(f, claimed)
	require.EqualValues(f, startAt, next)
	claimed, next = f.claim(startAt+4, 100)
	require.Equal(f, all[:5], claimed)
	require.EqualValues(f, startAt+5, next)
	require.EqualValues(f, 10, f.len())
}

func equalDeadlines(f fixture) {
	var all []deadline.Ref
	for _, seq := range []uint64{0, 1, 9, 10, 255, 256, 1 << 40, 1<<56 | 1, 1<<63 | 5, 1<<64 - 1} {
		all = append(all, deadline.Ref{Deadline: startAt, Queue: 1 << 63, Seq: seq})
	}
	f.apply(shuffled(all), nil)
	claimed, _ := f.claim(startAt, 4)
	require.Equal(f, all[:4], claimed)
	claimed, _ = f.claim(startAt, 100)
	require.Equal(f, all[4:], claimed)
	claimed, _ = f.claim(startAt+lease, 100)
	require.Equal(f, all, claimed, "in order of seq after their lease too")
}

func manyQueues(f fixture) {
	var all []deadline.Ref
	for queue := range uint64(300) {
		for seq := range uint64(3) {
			all = append(all, deadline.Ref{Deadline: startAt, Queue: queue * 0x9e3779b97f4a7c15, Seq: seq})
		}
	}
	f.apply(shuffled(all), nil)
	var claimed []deadline.Ref
	for len(claimed) < len(all) {
		some, next := f.claim(startAt, 100)
		require.Len(f, some, 100)
		claimed = append(claimed, some...)
		require.Equal(f, len(claimed) < len(all), next == startAt)
	}
	require.ElementsMatch(f, all, claimed)
	for _, queue := range byQueue(claimed) {
		require.True(f, slices.IsSortedFunc(queue, deadline.Ref.Compare))
	}
}

func byQueue(shadows []deadline.Ref) map[uint64][]deadline.Ref {
	queues := map[uint64][]deadline.Ref{}
	for _, s := range shadows {
		queues[s.Queue] = append(queues[s.Queue], s)
	}
	return queues
}

func claimsAtMost(f fixture) {
	all := row(7, 3000)
	f.apply(all, nil)
	claimed, next := f.claim(startAt+1e6, 0)
	require.Empty(f, claimed)
	require.EqualValues(f, startAt, next)
	claimed, next = f.claim(startAt+1e6, 1)
	require.Equal(f, all[:1], claimed)
	require.EqualValues(f, startAt+1, next)
	claimed, next = f.claim(startAt+1e6, 900)
	require.Equal(f, all[1:901], claimed)
	require.LessOrEqual(f, next, deadline.Instant(startAt+1e6))
	require.Equal(f, all[901:], f.claimAll(startAt+1e6))
}

func slicesAreTheCallers(f fixture) {
	add, gone := row(1, 3), row(1, 1)
	f.apply(add, gone)
	clear(add)
	clear(gone)
	out := row(9, 2)
	out, _, err := f.store.Claim(context.Background(), startAt+10, 10, startAt+lease, out)
	require.NoError(f, err)
	require.Equal(f, append(row(9, 2), row(1, 3)[1:]...), out)
	clear(out)
	claimed, _ := f.claim(startAt+lease, 10)
	require.Equal(f, row(1, 3)[1:], claimed)
}

func leaseEnds(f fixture) {
	all := row(1, 3)
	f.apply(all, nil)
	_, next := f.claim(startAt+5, 10)
	require.EqualValues(f, startAt+5+lease, next, "when the lease ends")
	claimed, _ := f.claim(startAt+5+lease-1, 10)
	require.Empty(f, claimed)
	claimed, _ = f.claim(startAt+5+lease, 2)
	require.Equal(f, all[:2], claimed)
	claimed, _ = f.claim(startAt+5+lease, 10)
	require.Equal(f, all[2:], claimed)
	require.EqualValues(f, 3, f.len())
}

func settled(f fixture) {
	all := row(1, 6)
	f.apply(all, nil)
	f.claim(startAt+2, 10)
	f.settle([]deadline.Ref{all[2], all[0], all[5]})
	f.settle(all[:1])
	require.EqualValues(f, 3, f.len())
	claimed, next := f.claim(startAt+100, 10)
	require.Equal(f, all[3:5], claimed)
	require.EqualValues(f, startAt+2+lease, next)
	f.settle(all)
	require.Zero(f, f.len())
	_, next = f.claim(startAt+1e6, 10)
	require.Zero(f, next)
}

func later(f fixture) {
	all := row(1, 4)
	f.apply(all, nil)
	f.claim(startAt, 1)
	f.settle(nil,
		scheduler.Later{Ref: all[0], At: startAt + 50}, // claimed
		scheduler.Later{Ref: all[1], At: startAt + 20}, // not claimed
		scheduler.Later{Ref: row(2, 1)[0], At: startAt})
	require.EqualValues(f, 4, f.len())
	claimed, next := f.claim(startAt+10, 10)
	require.Equal(f, all[2:], claimed)
	require.EqualValues(f, startAt+20, next)
	claimed, _ = f.claim(startAt+49, 10)
	require.Equal(f, all[1:2], claimed)
	claimed, _ = f.claim(startAt+50, 10)
	require.Equal(f, all[:1], claimed)
	f.settle(nil, scheduler.Later{Ref: all[0], At: startAt + 60}, scheduler.Later{Ref: all[0], At: all[0].Deadline})
	claimed, _ = f.claim(startAt+51, 10)
	require.Equal(f, all[:1], claimed, "back at its deadline")
}

func idempotent(f fixture) {
	all := row(1, 5)
	for range 3 {
		f.apply(all, nil)
		f.apply(append(all[:2:2], all...), nil)
		require.EqualValues(f, 5, f.len())
	}
	for range 2 {
		f.apply(nil, append(all[:1:1], all[:3]...))
		require.EqualValues(f, 2, f.len())
	}
	claimed, _ := f.claim(startAt+10, 10)
	require.Equal(f, all[3:], claimed)
}

func resets(f fixture) {
	all := row(1, 3)
	f.apply(all, nil)
	f.claim(startAt+10, 10)
	f.apply(all[1:2], nil)
	require.EqualValues(f, 3, f.len())
	claimed, _ := f.claim(startAt+10, 10)
	require.Equal(f, all[1:2], claimed)
	f.settle(nil, scheduler.Later{Ref: all[2], At: startAt + 1e6})
	f.apply(all[2:], nil)
	_, next := f.claim(startAt, 10)
	require.EqualValues(f, all[2].Deadline, next)
}

func removed(f fixture) {
	all := row(1, 6)
	f.apply(all, nil)
	f.claim(startAt+2, 10)
	f.settle(nil, scheduler.Later{Ref: all[5], At: startAt + 1e6})
	f.apply(nil, []deadline.Ref{all[1], all[4], all[5], row(3, 1)[0]})
	f.apply(row(2, 1), row(2, 1)) // in both: removed
	require.EqualValues(f, 3, f.len())
	claimed, _ := f.claim(startAt+1e7, 10)
	require.Equal(f, []deadline.Ref{all[3], all[0], all[2]}, claimed, "in order of score")
}

func addedAgain(f fixture) {
	all := row(1, 3)
	for range 3 {
		f.apply(all, nil)
		f.apply(nil, all)
	}
	f.apply(all, nil)
	f.claim(startAt+10, 10)
	f.apply(nil, all)
	f.apply(all, nil)
	claimed, _ := f.claim(startAt+10, 10)
	require.Equal(f, all, claimed)
}

func removedMany(f fixture) {
	all := row(1, 20_000)
	f.apply(shuffled(all), nil)
	var gone, kept []deadline.Ref
	for i, s := range all {
		if i%10 == 3 {
			kept = append(kept, s)
		} else {
			gone = append(gone, s)
		}
	}
	f.apply(nil, shuffled(gone))
	require.EqualValues(f, len(kept), f.len())
	require.Equal(f, kept, f.claimAll(startAt+1e6))
}

func farAndPast(f fixture) {
	const tenYears = 315_360_000_000_000
	all := []deadline.Ref{
		{Deadline: 1, Queue: 1, Seq: 1},
		{Deadline: startAt - tenYears, Queue: 1, Seq: 2},
		{Deadline: startAt, Queue: 1, Seq: 3},
		{Deadline: startAt + 1<<40 - 1, Queue: 1, Seq: 4},
		{Deadline: startAt + 1<<40, Queue: 1, Seq: 5},
		{Deadline: startAt + tenYears, Queue: 1, Seq: 6},
		{Deadline: scheduler.MaxDeadline, Queue: 1, Seq: 7},
	}
	f.apply(shuffled(all), nil)
	claimed, next := f.claim(startAt, 10)
	require.Equal(f, all[:3], claimed)
	require.EqualValues(f, startAt+lease, next)
	f.settle(claimed)
	claimed, _ = f.claim(startAt+tenYears, 10)
	require.Equal(f, all[3:6], claimed)
	f.settle(claimed)
	_, next = f.claim(startAt, 10)
	require.EqualValues(f, scheduler.MaxDeadline, next)
}

func invalid(f fixture) {
	ctx, good := context.Background(), row(1, 1)
	for _, at := range []deadline.Instant{-1 << 63, -1, 0, scheduler.MaxDeadline + 1, 1<<63 - 1} {
		bad := []deadline.Ref{{Deadline: at, Queue: 1, Seq: 1}}
		require.ErrorIs(f, f.store.Apply(ctx, bad, nil), scheduler.ErrInstant)
		require.ErrorIs(f, f.store.Settle(ctx, nil, []scheduler.Later{{Ref: good[0], At: at}}), scheduler.ErrInstant)
	}
	_, _, err := f.store.Claim(ctx, startAt, 1, scheduler.MaxDeadline+1, nil)
	require.ErrorIs(f, err, scheduler.ErrInstant)
	require.Zero(f, f.len())
}

func shortLease(f fixture) {
	f.apply(row(1, 1), nil)
	_, _, err := f.store.Claim(context.Background(), startAt, 1, startAt, nil)
	require.Error(f, err)
	claimed, _ := f.claim(startAt, 1)
	require.Len(f, claimed, 1)
}

// concurrent claims from several goroutines at once, while others add and remove: each
// shadow is claimed once within its lease.
func concurrent(f fixture) {
	const claimers, n = 3, 3000
	all := row(1, n)
	for i := range all {
		all[i].Queue = uint64(i % 17)
	}
	f.apply(all, nil)
	claimed := make([][]deadline.Ref, claimers)
	var wg sync.WaitGroup
	for i := range claimers {
		wg.Go(func() {
			for {
				before := len(claimed[i])
				var err error
				claimed[i], _, err = f.store.Claim(context.Background(), startAt+n, 50, startAt+1e6, claimed[i])
				if err != nil {
					f.Error(err)
				}
				if len(claimed[i]) == before {
					return
				}
			}
		})
	}
	wg.Go(func() {
		for _, s := range row(99, 50) { // beyond what is claimed
			s.Deadline += 1e6
			if err := f.store.Apply(context.Background(), []deadline.Ref{s}, nil); err != nil {
				f.Error(err)
			}
		}
	})
	wg.Wait()
	require.ElementsMatch(f, all, slices.Concat(claimed...))
	require.EqualValues(f, n+50, f.len())
}
