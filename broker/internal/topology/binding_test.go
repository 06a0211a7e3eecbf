package topology_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
)

// What is not bound is unbound already, whatever is missing; what is bound to another's queue stays.
func TestUnbind(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{})
	mine, theirs := new(int), new(int)
	_, err := vh.Queues.Declare(theirs, "q", broker.QueueDeclare{Exclusive: true})
	require.NoError(t, err)
	b := broker.Binding{Source: "amq.direct", Destination: "q", RoutingKey: "k"}
	require.NoError(t, vh.Bind(theirs, b))
	for _, missing := range []broker.Binding{
		{Source: "amq.direct", Destination: "q", RoutingKey: "another"},
		{Source: "amq.direct", Destination: "none", RoutingKey: "k"},
		{Source: "none", Destination: "q", RoutingKey: "k"},
		{Source: "none", Destination: "none", RoutingKey: "k"},
		{Source: "amq.direct", Destination: "none", RoutingKey: "k", ToExchange: true},
	} {
		assert.NoError(t, vh.Unbind(mine, missing), "%v", missing)
	}
	var refused *amqp.Exception
	require.ErrorAs(t, vh.Unbind(mine, b), &refused)
	assert.EqualValues(t, amqp.ResourceLocked, refused.Code)
	require.ErrorAs(t, vh.Unbind(mine, broker.Binding{Destination: "none"}), &refused)
	assert.EqualValues(t, amqp.AccessRefused, refused.Code)
	assert.Equal(t, 1, bindingsFrom(t, vh, "amq.direct"))
	require.NoError(t, vh.Unbind(theirs, b))
	assert.Zero(t, bindingsFrom(t, vh, "amq.direct"))
}
