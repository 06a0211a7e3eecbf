package keeper

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// TestKnowsWhatTheLastOneKnew: a keeper begins with the deadlines that the queue's last keeper knew.
func TestKnowsWhatTheLastOneKnew(t *testing.T) {
	o := Options{Queue: "q", Now: func() deadline.Instant { return 1 }, Remembered: []Shadow{{Fingerprint: 1, Deadline: 5}, {Fingerprint: 1, Deadline: 9, AgeUnknown: true}},
		Connect: func(context.Context) (*cluster.Conn, error) { return nil, nil }, Facts: func(context.Context) (Facts, error) { return Facts{}, nil }}
	k, err := New(o)
	require.NoError(t, err)
	require.Equal(t, o.Remembered, k.Remembered())
	k.core.given.pass() // applications have taken messages behind them
	require.Equal(t, o.Remembered, k.Remembered())
}

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
