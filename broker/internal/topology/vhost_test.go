package topology_test

import (
	"fmt"
	"runtime"
	"testing"

	"curfew/broker"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestQueueInAnyCase: of several the first by name is found, as long as it exists.
func TestQueueInAnyCase(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{})
	for _, name := range []string{"orders", "Orders", "ORDERS", "ÉTÉ", "other"} {
		_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{})
		require.NoError(t, err)
	}
	for _, first := range []string{"ORDERS", "Orders", "orders"} {
		q, err := vh.Queues.GetAnyCase("oRDERS")
		require.NoError(t, err)
		assert.Equal(t, first, q.Name)
		_, err = vh.Queues.Delete(nil, first, broker.QueueDeletion{})
		require.NoError(t, err)
	}
	_, err := vh.Queues.GetAnyCase("orders")
	assert.EqualValues(t, 404, codeOf(err))
	q, err := vh.Queues.GetAnyCase("été")
	require.NoError(t, err)
	assert.Equal(t, "ÉTÉ", q.Name)
}

// TestQueueInAnyCaseOfMany: it is found without a list of the others.
func TestQueueInAnyCaseOfMany(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{})
	for i := range 2000 {
		_, err := vh.Queues.Declare(nil, fmt.Sprint("Q", i), broker.QueueDeclare{})
		require.NoError(t, err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		_, err := vh.Queues.GetAnyCase("q1")
		require.NoError(t, err)
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20), "a list of all would be 16 KiB each time")
}
