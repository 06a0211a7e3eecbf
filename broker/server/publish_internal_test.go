package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
)

// What one read brings is flushed in parts if it goes to very many queues.
func TestPublishesToManyQueuesFillABatch(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, b.Close()) }()
	vh, ok := b.VHost("/")
	require.True(t, ok)
	const queues = 256
	require.NoError(t, vh.Exchanges.Declare("many", broker.ExchangeDeclare{Kind: "fanout"}))
	for i := range queues {
		name := string(rune('A' + i))
		_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{})
		require.NoError(t, err)
		require.NoError(t, vh.Bind(nil, broker.Binding{Source: "many", Destination: name}))
	}
	ch := channel{publisher: vh.NewPublisher("guest")}
	publishes := 0
	for ch.dirty = true; !ch.full(); publishes++ {
		routed, err := ch.publisher.Add(&broker.Publication{Exchange: []byte("many"), Properties: []byte{0, 0}})
		require.NoError(t, err)
		require.True(t, routed)
	}
	assert.Equal(t, flushEntries/queues, publishes)
	ch.publisher.Flush(nil)
	assert.False(t, ch.full())
}
