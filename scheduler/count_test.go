package scheduler

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestCount holds counts against a plain list, over deadlines that crowd and that spread.
func TestCount(t *testing.T) {
	for _, spread := range []deadline.Instant{1, 50, 1_000_000, 1 << 40} {
		s, rng := NewIndex(nil), rand.New(rand.NewPCG(3, 4))
		require.Equal(t, []int64{0}, s.PendingBefore([]deadline.Instant{startAt}, nil))
		var all []deadline.Ref
		for i := range 50_000 {
			all = append(all, deadline.Ref{Deadline: startAt + deadline.Instant(rng.Int64N(int64(spread))), Queue: 1 + rng.Uint64N(3), Seq: uint64(i + 1)})
		}
		require.NoError(t, s.Apply(t.Context(), all, nil))
		until := []deadline.Instant{0, startAt - 1, startAt, startAt + spread/3, startAt + spread/2, startAt + spread}
		require.Equal(t, counted(all, until), s.PendingBefore(until, nil))
		require.NoError(t, s.Apply(t.Context(), nil, all[:30_000]))
		require.Equal(t, counted(all[30_000:], until), s.PendingBefore(until, nil))
	}
}

// TestCountOfClaimed: what was claimed counts as having come, whatever its lease.
func TestCountOfClaimed(t *testing.T) {
	s := NewIndex(nil)
	due, later := deadline.Ref{Deadline: startAt, Queue: 1, Seq: 1}, deadline.Ref{Deadline: startAt + 10, Queue: 1, Seq: 2}
	require.NoError(t, s.Apply(t.Context(), []deadline.Ref{due, later}, nil))
	_, _, err := s.Claim(t.Context(), startAt, 10, startAt+1000, nil)
	require.NoError(t, err)
	require.Equal(t, []int64{1, 2}, s.PendingBefore([]deadline.Instant{startAt, startAt + 10}, nil))
}

func counted(all []deadline.Ref, until []deadline.Instant) []int64 {
	out := make([]int64, len(until))
	for i, at := range until {
		for _, s := range all {
			if s.Deadline <= at {
				out[i]++
			}
		}
	}
	return out
}
