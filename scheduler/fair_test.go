package scheduler_test

import (
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
	f, ctx := scheduler.NewFair(oneTenantEach), t.Context()
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
		claimed, _, err = f.Claim(ctx, 20, most, 1000, claimed[:0])
		require.NoError(t, err)
	}
	require.LessOrEqual(t, turns, 2)
}

// TestTenantsAreForgotten: a tenant's shadows are found again when nobody knows any more whose their
// queue is, and nothing is left of it when they are gone.
func TestTenantsAreForgotten(t *testing.T) {
	known := true
	f, ctx := scheduler.NewFair(func(queue uint64) string {
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
	require.Equal(t, []int64{0, 3000}, f.Count([]deadline.Instant{9, 16}, nil))
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
