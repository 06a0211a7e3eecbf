package topology_test

import (
	"fmt"
	"testing"

	"curfew/broker"
	"curfew/broker/amqp"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestBindingsBetween: those between two ends are found without a look at the others.
func TestBindingsBetween(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{})
	bind := func(b broker.Binding) broker.Binding {
		require.NoError(t, vh.Bind(nil, b))
		return b
	}
	for _, q := range []string{"a", "b"} {
		_, err := vh.Queues.Declare(nil, q, broker.QueueDeclare{})
		require.NoError(t, err)
	}
	want := []broker.Binding{
		bind(broker.Binding{Source: "amq.topic", Destination: "a", RoutingKey: "1", Args: amqp.Table{"n": int32(1)}}),
		bind(broker.Binding{Source: "amq.topic", Destination: "a", RoutingKey: "2"}),
	}
	exchange := bind(broker.Binding{Source: "amq.topic", Destination: "amq.fanout", ToExchange: true, RoutingKey: "x"})
	for i := range 2000 {
		bind(broker.Binding{Source: "amq.direct", Destination: "a", RoutingKey: fmt.Sprint(i)})
		bind(broker.Binding{Source: "amq.topic", Destination: "b", RoutingKey: fmt.Sprint(i)})
	}
	between := func(source, destination string, toExchange bool) []broker.Binding {
		return vh.BindingsBetween(broker.Binding{Source: source, Destination: destination, ToExchange: toExchange})
	}
	assert.Equal(t, want, between("amq.topic", "a", false))
	assert.Equal(t, []broker.Binding{exchange}, between("amq.topic", "amq.fanout", true))
	assert.Equal(t, []broker.Binding{{Destination: "a", RoutingKey: "a"}}, between("", "a", false))
	for _, none := range [][]broker.Binding{between("amq.topic", "amq.fanout", false), between("", "a", true), between("", "c", false), between("gone", "a", false), between("amq.fanout", "a", false)} {
		assert.Empty(t, none)
	}
	assert.Less(t, testing.AllocsPerRun(10, func() { between("amq.topic", "a", false) }), 20.0)
}
