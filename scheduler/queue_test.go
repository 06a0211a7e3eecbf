package scheduler

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestRoomOfAMultitudeIsGivenBack: when most of those that were claimed are gone their memory is too, and the others are all there, in order.
func TestRoomOfAMultitudeIsGivenBack(t *testing.T) {
	const n, left = 100_000, 50
	s := NewIndex(nil)
	all := make([]deadline.Ref, n)
	for i := range all {
		all[i] = deadline.Ref{Deadline: startAt + deadline.Instant(i), Queue: 1, Seq: uint64(i + 1)}
	}
	require.NoError(t, s.Apply(t.Context(), all, nil))
	claimed, _, err := s.Claim(t.Context(), startAt+n, n, startAt+2*n, nil)
	require.NoError(t, err)
	require.Len(t, claimed, n)
	require.NoError(t, s.Settle(t.Context(), all[left:], nil))
	require.LessOrEqual(t, cap(s.queues[1].moved.Items), movedKeep)
	require.LessOrEqual(t, s.moves.most, movedKeep)
	again, _, err := s.Claim(t.Context(), startAt+2*n, n, startAt+3*n, nil)
	require.NoError(t, err)
	require.Equal(t, all[:left], again)
	require.NoError(t, s.Settle(t.Context(), again, nil))
	length, err := s.Len(t.Context())
	require.NoError(t, err)
	require.Zero(t, length)
}

// TestMovedLikeAMap: shadows that are put off to any score are claimed in order of score.
func TestMovedLikeAMap(t *testing.T) {
	rng, x, ctx := rand.New(rand.NewPCG(1, 2)), NewIndex(nil), t.Context()
	scores := map[deadline.Ref]deadline.Instant{}
	for range 20_000 {
		s := deadline.Ref{Deadline: startAt + deadline.Instant(rng.Int64N(300)), Queue: 1, Seq: 1}
		at := startAt + deadline.Instant(rng.Int64N(50))
		switch {
		case scores[s] == 0:
			require.NoError(t, x.Apply(ctx, []deadline.Ref{s}, nil))
			scores[s] = s.Deadline
		case rng.IntN(3) == 0:
			require.NoError(t, x.Settle(ctx, []deadline.Ref{s}, nil))
			delete(scores, s)
		default:
			require.NoError(t, x.Settle(ctx, nil, []Later{{s, at}}))
			scores[s] = at
		}
		if q := x.queues[1]; q != nil {
			require.Equal(t, len(scores), q.len())
			require.Len(t, x.moves.places, len(q.moved.Items))
		}
	}
	for i, l := range x.queues[1].moved.Items {
		require.EqualValues(t, i, x.moves.places[l.Ref])
	}
	claimed, _, err := x.Claim(ctx, startAt+300, 1000, startAt+301, nil)
	require.NoError(t, err)
	require.Len(t, claimed, len(scores))
	require.True(t, slices.IsSortedFunc(claimed, func(a, b deadline.Ref) int { return cmp.Or(cmp.Compare(scores[a], scores[b]), a.Compare(b)) }))
}
