package delay

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// TestTheDefaultExchangeIsThere: once a queue's dead letters go to it, no exchange is missing, and no channel is opened to ask.
func TestTheDefaultExchangeIsThere(t *testing.T) {
	list := &cluster.Inventory{Queues: []cluster.Queue{{Name: "foo.delay", Policy: map[string]any{"dead-letter-exchange": ""}}}}
	k, err := New(Options{ClockOffset: noOffset, Inventory: func() *cluster.Inventory { return list },
		Options: keeper.Options{Queue: "foo.delay", Log: zap.NewNop(), Now: func() deadline.Instant { return 1 },
			Facts:   func(context.Context) (keeper.Facts, error) { return keeper.Facts{}, nil },
			Connect: func(context.Context) (*cluster.Conn, error) { return nil, nil }}})
	require.NoError(t, err)
	k.trouble(Nowhere, "there is no exchange foo.now", 0)
	s := &session{k: k} // without a connection
	s.lookBehind()
	require.Empty(t, k.troubles)
}
