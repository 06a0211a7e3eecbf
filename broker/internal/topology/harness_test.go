package topology_test

import (
	"errors"
	"testing"

	"curfew/broker"
	"curfew/broker/amqp"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func declaringBroker(t *testing.T, o broker.Options) (*broker.Broker, *broker.VHost) {
	b, err := broker.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return b, vhost(b)
}

func vhost(b *broker.Broker) *broker.VHost {
	vh, _ := b.VHost("/")
	return vh
}

func bindingsFrom(t *testing.T, vh *broker.VHost, name string) int {
	x, err := vh.Exchanges.Get(name)
	require.NoError(t, err)
	return x.Bindings
}

// codeOf is the code of an exception; 0 for another error.
func codeOf(err error) uint16 {
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		return e.Code
	}
	return 0
}
