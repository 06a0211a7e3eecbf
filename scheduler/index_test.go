package scheduler_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

func TestHas(t *testing.T) {
	s, ctx := scheduler.NewIndex(), context.Background()
	waiting, leased := deadline.Ref{Deadline: 20, Queue: 1, Seq: 1}, deadline.Ref{Deadline: 10, Queue: 1, Seq: 1}
	require.False(t, s.Has(waiting))
	require.NoError(t, s.Apply(ctx, []deadline.Ref{waiting, leased}, nil))
	_, _, err := s.Claim(ctx, 10, 9, 30, nil)
	require.NoError(t, err)
	require.True(t, s.Has(waiting))
	require.True(t, s.Has(leased))
	require.False(t, s.Has(deadline.Ref{Deadline: 10, Queue: 1, Seq: 2}))
	require.NoError(t, s.Close())
	require.False(t, s.Has(leased))
}

// TestFirst: what was claimed or put off has come, so another deadline is the first.
func TestFirst(t *testing.T) {
	s := scheduler.NewIndex()
	require.Zero(t, s.First())
	due, later := deadline.Ref{Deadline: 100, Queue: 1, Seq: 1}, deadline.Ref{Deadline: 110, Queue: 1, Seq: 2}
	require.NoError(t, s.Apply(t.Context(), []deadline.Ref{due, later}, nil))
	require.Equal(t, due.Deadline, s.First())
	_, _, err := s.Claim(t.Context(), 100, 10, 101, nil)
	require.NoError(t, err)
	require.NoError(t, s.Settle(t.Context(), nil, []scheduler.Later{{Ref: due, At: 105}}))
	require.Equal(t, later.Deadline, s.First())
}
