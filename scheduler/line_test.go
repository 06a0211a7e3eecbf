package scheduler_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// oneTenantEach makes the first digit of a queue's number its tenant.
func oneTenantEach(queue uint64) string { return string(rune('0' + queue/10)) }

// TestOneTenantsMultitudeDoesNotHoldUpTheOthers: what another tenant has due is claimed next, whatever
// was due before it.
func TestOneTenantsMultitudeDoesNotHoldUpTheOthers(t *testing.T) {
	const n, most = 100_000, 100
	f, ctx := scheduler.NewIndex(oneTenantEach), t.Context()
	flood := make([]deadline.Ref, n)
	for i := range flood {
		flood[i] = deadline.Ref{Deadline: 10, Queue: uint64(10 + i%10), Seq: uint64(i + 1)}
	}
	require.NoError(t, f.Apply(ctx, flood, nil))
	claimed, next, err := f.Claim(ctx, 20, most, 1000, nil)
	require.NoError(t, err)
	require.Len(t, claimed, most)
	require.LessOrEqual(t, next, deadline.Instant(20))

	lone := deadline.Ref{Deadline: 15, Queue: 21, Seq: 1}
	require.NoError(t, f.Apply(ctx, []deadline.Ref{lone}, nil))
	turns := 0
	for claimed = nil; len(claimed) == 0 || claimed[0] != lone; turns++ {
		_, _, err = f.Claim(ctx, 20, 0, 1000, nil) // as the loop that rests: no turn
		require.NoError(t, err)
		claimed, _, err = f.Claim(ctx, 20, most, 1000, claimed[:0])
		require.NoError(t, err)
	}
	require.LessOrEqual(t, turns, 2)
}

// TestOneQueuesMultitudeDoesNotHoldUpTheOthers: what another queue of the same tenant has due is claimed soon, though very much was due before it, and
// the shadows of each queue are claimed in order, each once.
func TestOneQueuesMultitudeDoesNotHoldUpTheOthers(t *testing.T) {
	const n, most = 100_000, 256
	f, ctx := scheduler.NewIndex(func(uint64) string { return "one" }), t.Context()
	flood := make([]deadline.Ref, n)
	for i := range flood {
		flood[i] = deadline.Ref{Deadline: deadline.Instant(10 + i/1000), Queue: 1, Seq: uint64(i + 1)}
	}
	require.NoError(t, f.Apply(ctx, flood, nil))
	lone := deadline.Ref{Deadline: 10 + n/1000, Queue: 2, Seq: 1}
	require.NoError(t, f.Apply(ctx, []deadline.Ref{lone}, nil))
	var got []deadline.Ref
	for turns, left := 0, n+1; left > 0; turns++ {
		claimed, next, err := f.Claim(ctx, 1000, most, 2000, nil)
		require.NoError(t, err)
		require.NotEmpty(t, claimed)
		if i := slices.Index(claimed, lone); i >= 0 {
			require.LessOrEqual(t, turns, n/2048+2)
			claimed = slices.Delete(claimed, i, i+1)
			require.NoError(t, f.Settle(ctx, []deadline.Ref{lone}, nil))
			left--
		}
		asked := (len(claimed)*3 + 3) / 4
		claimed, later := claimed[:asked], claimed[asked:]
		require.NoError(t, f.Settle(ctx, claimed, putOff(later)))
		got, left = append(got, claimed...), left-len(claimed)
		length, err := f.Len(ctx)
		require.NoError(t, err)
		require.EqualValues(t, left, length)
		require.Equal(t, left > len(later), next != 0 && next <= 1000)
	}
	require.Equal(t, flood, got)
}

// putOff puts shadows off to their deadlines.
func putOff(shadows []deadline.Ref) (later []scheduler.Later) {
	for _, s := range shadows {
		later = append(later, scheduler.Later{Ref: s, At: s.Deadline})
	}
	return later
}

// TestTurnsOfVeryManyQueues: each gets its turns, in order and once, though they are more than are set apart at a time.
func TestTurnsOfVeryManyQueues(t *testing.T) {
	const queues, each = 6000, 5
	f, ctx := scheduler.NewIndex(func(uint64) string { return "one" }), t.Context()
	for seq := range uint64(each) {
		for queue := range uint64(queues) {
			require.NoError(t, f.Apply(ctx, []deadline.Ref{{Deadline: deadline.Instant(10 + seq), Queue: queue, Seq: seq}}, nil))
		}
	}
	next := make([]uint64, queues)
	for n := 0; n < queues*each; {
		claimed, _, err := f.Claim(ctx, 100, 256, 200, nil)
		require.NoError(t, err)
		require.NotEmpty(t, claimed)
		for _, s := range claimed {
			require.Equal(t, next[s.Queue], s.Seq)
			next[s.Queue]++
		}
		require.NoError(t, f.Settle(ctx, claimed, nil))
		n += len(claimed)
	}
	length, err := f.Len(ctx)
	require.NoError(t, err)
	require.Zero(t, length)
}

// TestHold: nothing of a queue that is held is claimed, others are, and after it goes on in order.
func TestHold(t *testing.T) {
	f, ctx := scheduler.NewIndex(func(uint64) string { return "one" }), t.Context()
	held, others := make([]deadline.Ref, 1000), make([]deadline.Ref, 1000)
	for i := range held {
		held[i] = deadline.Ref{Deadline: 10, Queue: 1, Seq: uint64(i + 1)}
		others[i] = deadline.Ref{Deadline: deadline.Instant(10 + i), Queue: 2, Seq: uint64(i + 1)}
	}
	require.NoError(t, f.Apply(ctx, append(slices.Clone(held), others...), nil))
	first, _, err := f.Claim(ctx, 2000, 100, 3000, nil)
	require.NoError(t, err)
	ofHeld := slices.DeleteFunc(slices.Clone(first), func(r deadline.Ref) bool { return r.Queue != 1 })
	n := len(ofHeld)
	require.Equal(t, held[:n], ofHeld)
	require.Greater(t, n, 30, "both have turns")
	f.Hold(1, true)
	require.NoError(t, f.Settle(ctx, nil, putOff(ofHeld[30:])))
	require.NoError(t, f.Settle(ctx, nil, putOff(slices.DeleteFunc(first, func(r deadline.Ref) bool { return r.Queue == 1 }))))
	var got []deadline.Ref
	for range 100 {
		claimed, next, err := f.Claim(ctx, 2000, 100, 3000, nil)
		require.NoError(t, err)
		if got = append(got, claimed...); len(claimed) == 0 {
			require.True(t, next == 0 || next > 2000)
			break
		}
		require.NoError(t, f.Settle(ctx, claimed, nil))
	}
	require.Equal(t, others, got)
	require.Equal(t, []int64{1000}, f.PendingBefore([]deadline.Instant{2000}, nil))
	require.NoError(t, f.Settle(ctx, ofHeld[:30], nil))
	require.NoError(t, f.Apply(ctx, nil, held[900:]))
	f.Hold(1, false)
	got = nil
	for len(got) < 870 {
		claimed, _, err := f.Claim(ctx, 2000, 100, 3000, nil)
		require.NoError(t, err)
		require.NotEmpty(t, claimed)
		got = append(got, claimed...)
	}
	require.Equal(t, held[30:900], got)
	require.NoError(t, f.Settle(ctx, got, nil))
	f.Hold(1, true) // of which there is nothing
	require.NoError(t, f.Apply(ctx, held[:1], nil))
	for _, want := range [][]deadline.Ref{nil, held[:1]} {
		got, _, err = f.Claim(ctx, 2000, 100, 3000, nil)
		require.NoError(t, err)
		require.Equal(t, want, got)
		f.Hold(1, false)
	}
}

// TestTenantsAreForgotten: a tenant's shadows are found again when nobody knows any more whose their
// queue is, and nothing is left of it when they are gone.
func TestTenantsAreForgotten(t *testing.T) {
	known := true
	f, ctx := scheduler.NewIndex(func(queue uint64) string {
		require.True(t, known)
		return oneTenantEach(queue)
	}), t.Context()
	var all []deadline.Ref
	for i := range uint64(3000) {
		all = append(all, deadline.Ref{Deadline: deadline.Instant(10 + i%7), Queue: 10 + i%60, Seq: i + 1})
	}
	require.NoError(t, f.Apply(ctx, all, nil))
	known = false
	require.Equal(t, deadline.Instant(10), f.First())
	require.Equal(t, []int64{0, 3000}, f.PendingBefore([]deadline.Instant{9, 16}, nil))
	seen := 0
	require.NoError(t, f.Scan(ctx, func(page []deadline.Ref) error {
		seen += len(page)
		return nil
	}))
	require.Equal(t, 3000, seen)
	require.NoError(t, f.Apply(ctx, nil, all[:1000]))
	var got []deadline.Ref
	for {
		claimed, _, err := f.Claim(ctx, 16, 100, 1000, nil)
		require.NoError(t, err)
		if len(claimed) == 0 {
			break
		}
		got = append(got, claimed...)
		require.NoError(t, f.Settle(ctx, claimed[1:], []scheduler.Later{{Ref: claimed[0], At: 500}}))
	}
	require.ElementsMatch(t, all[1000:], got)
	claimed, next, err := f.Claim(ctx, 500, 3000, 1000, nil)
	require.NoError(t, err)
	for len(claimed) > 0 {
		require.NoError(t, f.Settle(ctx, claimed, nil))
		claimed, next, err = f.Claim(ctx, 500, 3000, 1000, nil)
		require.NoError(t, err)
	}
	require.Zero(t, next)
	n, err := f.Len(ctx)
	require.NoError(t, err)
	require.Zero(t, n)
}

// TestUntilGoesBack: with an instant before that of the last claim, what is due by then is claimed all the same, and nothing else.
func TestUntilGoesBack(t *testing.T) {
	x, ctx := scheduler.NewIndex(oneTenantEach), t.Context()
	var all []deadline.Ref
	for i := range uint64(2000) {
		all = append(all, deadline.Ref{Deadline: deadline.Instant(1000 - i/10), Queue: 10 + i%20, Seq: i})
	}
	require.NoError(t, x.Apply(ctx, all, nil))
	var got []deadline.Ref
	for range 7 {
		var err error
		got, _, err = x.Claim(ctx, 2000, 100, 5000, got)
		require.NoError(t, err)
	}
	require.Len(t, got, 700)
	taken := map[deadline.Ref]bool{}
	for _, r := range got {
		taken[r] = true
	}
	for until := deadline.Instant(950); until >= 800; until -= 10 {
		want := slices.DeleteFunc(slices.Clone(all), func(r deadline.Ref) bool { return taken[r] || r.Deadline > until })
		var some []deadline.Ref
		for {
			claimed, next, err := x.Claim(ctx, until, 100, 5000, nil)
			require.NoError(t, err)
			if some = append(some, claimed...); next > until {
				break
			}
		}
		require.ElementsMatch(t, want, some)
		for _, r := range some {
			taken[r] = true
		}
	}
}

// TestHeldOnesHadTheirTurn: a tenant whose queue is held and let go again and again, as it has more due, keeps nobody from a turn.
func TestHeldOnesHadTheirTurn(t *testing.T) {
	x, ctx := scheduler.NewIndex(oneTenantEach), t.Context()
	const hot, busy, lone = 10, 20, 30
	for seq := range uint64(10_000) {
		require.NoError(t, x.Apply(ctx, []deadline.Ref{{Deadline: 10, Queue: hot, Seq: seq + 1}, {Deadline: 20, Queue: busy, Seq: seq + 1}}, nil))
	}
	require.NoError(t, x.Apply(ctx, []deadline.Ref{{Deadline: 30, Queue: lone, Seq: 1}}, nil))
	held := false
	for turns := 1; ; turns++ {
		claimed, _, err := x.Claim(ctx, 100, 256, 1000, nil)
		require.NoError(t, err)
		require.NotEmpty(t, claimed)
		if claimed[0].Queue == lone {
			return
		}
		require.Less(t, turns, 6)
		if held {
			x.Hold(hot, false)
		}
		if held = claimed[0].Queue == hot; held {
			x.Hold(hot, true)
		}
	}
}

// A round of turns takes little however many queues of a tenant have much due.
func TestRoundOfVeryManyQueuesIsShort(t *testing.T) {
	const queues, each, most = 2000, 200, 256
	f, ctx := scheduler.NewIndex(nil), t.Context()
	for q := range queues {
		flood := make([]deadline.Ref, each)
		for i := range flood {
			flood[i] = deadline.Ref{Deadline: 10, Queue: uint64(1 + q), Seq: uint64(i + 1)}
		}
		require.NoError(t, f.Apply(ctx, flood, nil))
	}
	last, turns := map[uint64]int{}, 0
	var claimed []deadline.Ref
	for turns*most < queues*each*3/4 {
		var err error
		claimed, _, err = f.Claim(ctx, 20, most, 1000, claimed[:0])
		require.NoError(t, err)
		require.NoError(t, f.Settle(ctx, claimed, nil))
		for _, s := range claimed {
			if before, ok := last[s.Queue]; ok && len(last) > queues/2 { // so many take turns by then
				require.Less(t, (turns-before)*most, 1<<16)
			}
			last[s.Queue] = turns
		}
		turns++
	}
	require.Greater(t, len(last), queues/2)
}
