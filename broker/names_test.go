package broker_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker"
)

// TestLongNames: AMQP has room for 255 octets, and so does whoever declares by an API.
func TestLongNames(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for _, c := range []struct {
		name    string
		refused bool
	}{{strings.Repeat("x", 255), false}, {strings.Repeat("x", 256), true}, {strings.Repeat("🐇", 64), true}} {
		_, err := x.vh.DeclareQueue(nil, c.name, broker.QueueDeclare{})
		assert.Equal(t, c.refused, err != nil, "queue: %v", err)
		err = x.vh.DeclareExchange(c.name, broker.ExchangeDeclare{Kind: "fanout"})
		assert.Equal(t, c.refused, err != nil, "exchange: %v", err)
	}
	assert.EqualError(t, x.vh.DeclareExchange(strings.Repeat("x", 300), broker.ExchangeDeclare{Kind: "fanout"}),
		"amqp: 406 PRECONDITION_FAILED - the name of an exchange has 300 octets, at most 255 are allowed")
}
