package scheduler

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestRoomOfAMultitudeIsGivenBack: when most of those that were claimed are gone their memory is too, and the others are all there, in order.
func TestRoomOfAMultitudeIsGivenBack(t *testing.T) {
	const n, left = 100_000, 50
	s := &Index{}
	all := make([]deadline.Ref, n)
	for i := range all {
		all[i] = deadline.Ref{Deadline: startAt + deadline.Instant(i), Queue: 1, Seq: uint64(i + 1)}
	}
	require.NoError(t, s.Apply(t.Context(), all, nil))
	claimed, _, err := s.Claim(t.Context(), startAt+n, n, startAt+2*n, nil)
	require.NoError(t, err)
	require.Len(t, claimed, n)
	require.NoError(t, s.Settle(t.Context(), all[left:], nil))
	require.LessOrEqual(t, s.moved.slots.Len(), movedKeep)
	again, _, err := s.Claim(t.Context(), startAt+2*n, n, startAt+3*n, nil)
	require.NoError(t, err)
	require.Equal(t, all[:left], again)
	require.NoError(t, s.Settle(t.Context(), again, nil))
	length, err := s.Len(t.Context())
	require.NoError(t, err)
	require.Zero(t, length)
}
