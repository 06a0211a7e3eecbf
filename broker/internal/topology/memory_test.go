package topology_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/internal/topology"
	"curfew/broker/policy"
)

// heap returns the octets that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestFootprint bounds what an idle queue takes, so that ten thousand of them are cheap.
func TestFootprint(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(topology.Queue{}), uintptr(568), "with its header of 8 octets a size of Go's allocator: the next is 640")
	assert.LessOrEqual(t, unsafe.Sizeof(policy.Settings{}), uintptr(160), "likewise: the next is 176")
	_, vh := declaringBroker(t, broker.Options{})
	const count = 5000
	before := heap()
	for i := range count {
		_, err := vh.Queues.Declare(nil, fmt.Sprint("queue ", i), broker.QueueDeclare{Args: amqp.Table{}})
		require.NoError(t, err)
	}
	assert.Less(t, (heap()-before)/count, int64(1024), "octets of an idle queue, with its places in maps, the turn of its priorities and the ages of its messages")
	runtime.KeepAlive(vh)
}

// Whatever is declared is counted, as what it takes, and no more when it is gone.
func TestWhatIsDeclaredIsCounted(t *testing.T) {
	b, vh := declaringBroker(t, broker.Options{})
	var hosts []string
	for name, one := range map[string]func(vh *broker.VHost, i int){
		"queues": func(vh *broker.VHost, i int) {
			_, err := vh.Queues.Declare(nil, fmt.Sprint("a queue ", i), broker.QueueDeclare{Args: amqp.Table{"x-message-ttl": int32(60000), "x-more": strings.Repeat("m", 100)}})
			require.NoError(t, err)
		},
		"exchanges": func(vh *broker.VHost, i int) {
			require.NoError(t, vh.Exchanges.Declare(fmt.Sprint("an exchange ", i), broker.ExchangeDeclare{Kind: "topic"}))
		},
		"bindings": func(vh *broker.VHost, i int) {
			require.NoError(t, vh.Bind(nil, broker.Binding{Source: "amq.direct", Destination: "amq.topic", ToExchange: true, RoutingKey: fmt.Sprint("a key ", i)}))
		},
		"bindings with arguments": func(vh *broker.VHost, i int) {
			require.NoError(t, vh.Bind(nil, broker.Binding{Source: "amq.headers", Destination: "amq.topic", ToExchange: true, Args: amqp.Table{"n": int64(i)}}))
		},
	} {
		own, _, err := b.PutVHost("", name, broker.VHostMetadata{})
		require.NoError(t, err)
		hosts = append(hosts, name)
		const count = 1000
		before, counted := heap(), vh.Registry().Memory.Used()
		for i := range count {
			one(own, i)
		}
		took, counts := heap()-before, vh.Registry().Memory.Used()-counted
		assert.Greater(t, counts, took*2/3, "%s: %d bytes each are counted as %d", name, took/count, counts/count)
		assert.Less(t, counts, took*2, "%s: %d bytes each are counted as %d", name, took/count, counts/count)
	}
	one, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err)
	require.NoError(t, vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", AutoDelete: true}))
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "x", Destination: one.Name, RoutingKey: "k"}))
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "x", Destination: one.Name, RoutingKey: "k"}))
	_, err = vh.Queues.Delete(nil, "q", broker.QueueDeletion{}) // the exchange goes with its last binding
	require.NoError(t, err)
	for _, name := range hosts {
		require.NoError(t, b.DeleteVHost(name))
	}
	assert.Zero(t, vh.Registry().Memory.Used(), "nothing is left")
}

func TestWhatIsDeclaredIsBounded(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{MemoryLimit: 1 << 20, MemoryInUse: func() int64 { return 0 }})
	args := amqp.Table{"x-nothing": strings.Repeat("n", 10<<10)}
	declareAll := func() (n int, err error) {
		for ; n < 100; n++ {
			if err = vh.Exchanges.Declare(fmt.Sprint("x", vh.Registry().Memory.Used()), broker.ExchangeDeclare{Kind: "direct", Args: args}); err != nil {
				return n, err
			}
		}
		return n, nil
	}
	require.NoError(t, vh.Exchanges.Declare("first", broker.ExchangeDeclare{Kind: "direct"}))

	vh.Registry().Memory.Low(true)
	n, err := declareAll()
	assert.ErrorContains(t, err, "PRECONDITION_FAILED - no memory to declare exchange 'x")
	assert.Equal(t, 2, n, "a little more, while memory is low")
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(t, err, "a small one still")

	vh.Registry().Memory.Low(false)
	n, err = declareAll()
	assert.ErrorContains(t, err, "no memory to declare")
	assert.Greater(t, n, 40)
	assert.LessOrEqual(t, vh.Registry().Memory.Used(), int64(1<<19))
	err = vh.Bind(nil, broker.Binding{Source: "first", Destination: "q", Args: args})
	assert.ErrorContains(t, err, "no memory to declare a binding of exchange 'first'")
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: "first", Destination: "q"}))

	require.NoError(t, vh.Exchanges.Delete("first", false))
	_, err = vh.Queues.Declare(nil, policy.UndeliverableQueue, broker.QueueDeclare{Durable: true})
	require.NoError(t, err, "a dead letter must not be lost for it")
}
