package scheduler_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// TestFirst: what was claimed or put off has come, so another deadline is the first.
func TestFirst(t *testing.T) {
	s := scheduler.NewIndex(nil)
	require.Zero(t, s.First())
	due, later := deadline.Ref{Deadline: 100, Queue: 1, Seq: 1}, deadline.Ref{Deadline: 110, Queue: 1, Seq: 2}
	require.NoError(t, s.Apply(t.Context(), []deadline.Ref{due, later}, nil))
	require.Equal(t, due.Deadline, s.First())
	_, _, err := s.Claim(t.Context(), 100, 10, 101, nil)
	require.NoError(t, err)
	require.NoError(t, s.Settle(t.Context(), nil, []scheduler.Later{{Ref: due, At: 105}}))
	require.Equal(t, later.Deadline, s.First())
}
