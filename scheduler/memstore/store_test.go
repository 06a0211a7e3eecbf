package memstore_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/scheduler"
	"curfew/scheduler/memstore"
	"curfew/scheduler/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) scheduler.Store { return memstore.New() })
}

func TestHas(t *testing.T) {
	s, ctx := memstore.New(), context.Background()
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
