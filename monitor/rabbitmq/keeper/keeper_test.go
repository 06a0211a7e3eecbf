package keeper

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStopReason: the last release has the reason for which the queue may no longer be kept.
func TestStopReason(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	end(&NotWanted{Settings, "It has a max-length."})
	require.Equal(t, reason{Settings, "It has a max-length."}, stopReason(inner))
	ctx, end = context.WithCancelCause(t.Context())
	end(nil)
	require.Equal(t, stopped, stopReason(ctx))
}
