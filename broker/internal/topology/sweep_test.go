package topology_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/internal/topology"
	"curfew/broker/store"
)

// manyBound makes exchanges and queues with more bindings than are removed at once.
func manyBound(t *testing.T, b *broker.Broker) (bindings int) {
	require.NoError(t, b.Change("/", func(b *broker.Broker) error {
		declareMany(t, vhost(b))
		return nil
	}))
	return len(vhost(b).Bindings())
}

func declareMany(t *testing.T, vh *broker.VHost) {
	for _, name := range []string{"from", "to"} {
		require.NoError(t, vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "direct", Durable: true, Args: amqp.Table{"alternate-exchange": "amq.fanout"}}))
	}
	require.NoError(t, vh.Exchanges.Declare("auto", broker.ExchangeDeclare{Kind: "fanout", Durable: true, AutoDelete: true}))
	for _, name := range []string{"q", "other"} {
		_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true})
		require.NoError(t, err)
	}
	require.NoError(t, bindKey(vh, "amq.fanout", "other", false, ""))
	require.NoError(t, bindKey(vh, "auto", "q", false, ""))
	for i := range 2 * topology.SweepStep {
		for _, to := range []string{"q", "other"} {
			require.NoError(t, bindKey(vh, "from", to, false, fmt.Sprint(i)))
		}
		require.NoError(t, bindKey(vh, "from", "to", true, fmt.Sprint(i)))
		require.NoError(t, bindKey(vh, "to", "q", false, fmt.Sprint(i)))
	}
}

func bindKey(vh *broker.VHost, from, to string, toExchange bool, key string) error {
	return vh.Bind(nil, broker.Binding{Source: from, Destination: to, ToExchange: toExchange, RoutingKey: key})
}

// TestWhatIsDeletedLeadsNowhere from the first moment on, however many bindings are left to remove, and a start finds none
// of them, even if nothing more of them could be removed before it.
func TestWhatIsDeletedLeadsNowhere(t *testing.T) {
	const each = 2 * topology.SweepStep
	for name, c := range map[string]struct {
		begin func(vh *broker.VHost) (more bool) // deletes without removing all bindings
		keys  map[string][]string                // where a message to "from" with a key goes then
		left  int                                // bindings that are removed
	}{
		"a queue":     {func(vh *broker.VHost) bool { return topology.BeginDeleteQueue(vh.VHost, "q") }, map[string][]string{"0": {"other"}, "none": {"other"}}, 2*each + 2},
		"an exchange": {func(vh *broker.VHost) bool { return topology.BeginDeleteExchange(vh.VHost, "to") }, map[string][]string{"0": {"q", "other"}}, 2 * each},
	} {
		for _, finish := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", all removed: ", finish), func(t *testing.T) {
				o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
				b, err := broker.New(o)
				require.NoError(t, err)
				vh := vhost(b)
				bindings := manyBound(t, b)
				require.True(t, c.begin(vh), "some are left")
				check := func() {
					for key, want := range c.keys {
						assert.ElementsMatch(t, want, vh.Destinations("from", key))
					}
				}
				check()
				if finish {
					vh.Sweep()
					require.Len(t, vh.Bindings(), bindings-c.left)
					require.Empty(t, vh.Claims())
				}
				for range 2 {
					require.NoError(t, b.Close())
					b, err = broker.New(o)
					require.NoError(t, err)
					vh = vhost(b)
					check()
					_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
					require.NoError(t, err)
					require.NoError(t, vh.Exchanges.Declare("to", broker.ExchangeDeclare{Kind: "direct", Durable: true, Args: amqp.Table{"alternate-exchange": "amq.fanout"}}))
					check()
				}
				require.NoError(t, b.Close())
			})
		}
	}
}

// TestDeletedNameIsTakenAgain: what is declared under the name of something that was just deleted has none of its bindings,
// in memory and on disk, and keeps its own.
func TestDeletedNameIsTakenAgain(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir(), SegmentBytes: 1 << 18}}
	b, err := broker.New(o)
	require.NoError(t, err)
	vh := vhost(b)
	manyBound(t, b)
	require.True(t, topology.BeginDeleteQueue(vh.VHost, "q"))
	swept := make(chan struct{})
	go func() { vh.Sweep(); close(swept) }()
	_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	require.NoError(t, bindKey(vh, "from", "q", false, "0"))
	<-swept
	for range 2 {
		assert.ElementsMatch(t, []string{"q", "other"}, vh.Destinations("from", "0"))
		assert.ElementsMatch(t, []string{"other"}, vh.Destinations("from", "1"))
		require.NoError(t, b.Close())
		b, err = broker.New(o)
		require.NoError(t, err)
		vh = vhost(b)
	}
	require.NoError(t, b.Close())
}

// TestDeletingGivesBackMemory and removes exchanges that lose their last binding, whichever way it goes.
func TestDeletingGivesBackMemory(t *testing.T) {
	b, vh := declaringBroker(t, broker.Options{})
	manyBound(t, b)
	_, err := vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	assert.Error(t, vh.Exchanges.Check("auto"), "it went with its last binding")
	require.NoError(t, vh.Exchanges.Delete("from", false))
	require.NoError(t, vh.Exchanges.Delete("to", false))
	_, err = vh.Queues.Delete(nil, "other", broker.QueueDeletion{})
	require.NoError(t, err)
	assert.Empty(t, vh.Bindings())
	assert.Zero(t, vh.Registry().Memory.Used())
}
