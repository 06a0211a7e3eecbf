package broker_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/store"
)

func TestConcurrentDurableDeclares(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				name := fmt.Sprint(i%4, "-", j) // two declare the same
				_, err := x.vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true})
				assert.NoError(t, err)
				assert.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.direct", Destination: name, RoutingKey: name}))
			}
		})
	}
	all.Wait()
	x = restarted(t, o, x.b)
	for i := range 4 {
		for j := range 10 {
			name := fmt.Sprint(i, "-", j)
			x.publishPersistent("amq.direct", name, "m", "")
			q, err := x.vh.Queues.Get(name)
			require.NoError(t, err)
			assert.Equal(t, []string{"m"}, x.drain(q))
		}
	}
	require.NoError(t, x.b.Close())
}

func TestDeadLetterNamesHaveToFitTheWire(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	long := strings.Repeat("k", 256)
	for _, args := range []amqp.Table{
		{"x-dead-letter-exchange": long}, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": long},
	} {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: args})
		assert.EqualValues(t, amqp.PreconditionFailed, code(err))
		assert.ErrorContains(t, err, "{too_long,256}")
	}
}

// TestArgumentsThatMeanNothing are refused if they are Curfew's own or Service Bus's; what
// is nobody's, or a plugin's of RabbitMQ, passes.
func TestArgumentsThatMeanNothing(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for arg, why := range map[string]string{
		"x-expires-at": `"a header of messages"`, "x-scheduled-enqueue-time": `"a header of messages"`, "x-requires-session": `"sessions are not supported"`,
		"x-default-message-time-to-live": `"use x-message-ttl"`, "x-forward-to": `"auto-forwarding is not supported"`,
	} {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{arg: int32(1)}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg '"+arg+"' for queue 'q' in vhost '/': "+why, text(err))
		err = x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{arg: int32(1)}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg '"+arg+"' for exchange 'x' in vhost '/': "+why, text(err))
	}
	for arg, value := range map[string]any{
		"x-lock-duration": int32(1000), "x-dead-letter-queue": true, "x-max-delivery-count": int32(3), "x-ttl-precedence": "min",
		"x-delivery-deadline": true, "x-remaining-expiration": true,
	} {
		err := x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{arg: value}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg '"+arg+"' for exchange 'x' in vhost '/': \"an argument of queues\"", text(err))
	}
	for value, why := range map[any]string{
		int32(0): "{value_zero,0}", int32(-1): "{value_negative,-1}", int32(65_536): "{value_too_large,65536}", "3": `"expected integer, got longstr"`,
	} {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-max-delivery-count": value}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg 'x-max-delivery-count' for queue 'q' in vhost '/': "+why, text(err))
	}
	err := x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{"x-auto-delete-on-idle": int32(299_999)}})
	assert.Equal(t, "PRECONDITION_FAILED - invalid arg 'x-auto-delete-on-idle' for exchange 'x' in vhost '/': 299999 is less than CURFEW_IDLE_MINIMUM, which is 300000 ms", text(err))
	others := amqp.Table{"x-message-deduplication": true, "x-cache-size": int32(9), "x-modulus": int32(7), "x-delay": int32(5), "x-whatever": "y"}
	x.queue("q", others)
	require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Args: others}))
	x.queue("counted", amqp.Table{"x-max-delivery-count": int32(3)})
	_, err = x.vh.Queues.Declare(nil, "counted", broker.QueueDeclare{Args: amqp.Table{"x-max-delivery-count": int32(4)}})
	assert.Equal(t, "PRECONDITION_FAILED - inequivalent arg 'x-max-delivery-count' for queue 'counted' in vhost '/': received '4' but current is '3'", text(err))
}

// TestLongNames: AMQP has room for 255 octets, and so does whoever declares by an API.
func TestLongNames(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for _, c := range []struct {
		name    string
		refused bool
	}{{strings.Repeat("x", 255), false}, {strings.Repeat("x", 256), true}, {strings.Repeat("🐇", 64), true}} {
		_, err := x.vh.Queues.Declare(nil, c.name, broker.QueueDeclare{})
		assert.Equal(t, c.refused, err != nil, "queue: %v", err)
		err = x.vh.Exchanges.Declare(c.name, broker.ExchangeDeclare{Kind: "fanout"})
		assert.Equal(t, c.refused, err != nil, "exchange: %v", err)
	}
	assert.EqualError(t, x.vh.Exchanges.Declare(strings.Repeat("x", 300), broker.ExchangeDeclare{Kind: "fanout"}),
		"amqp: 406 PRECONDITION_FAILED - the name of an exchange has 300 octets, at most 255 are allowed")
}
