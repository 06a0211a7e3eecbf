package topology_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// TestChange: arguments that are changed count together with policies, and are no more in memory than was counted. What cannot be
// changed stays.
func TestChange(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{})
	args := amqp.Table{"x-message-ttl": int64(1000), "x-max-length": int64(5)}
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: args})
	require.NoError(t, err)
	_, err = vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"message-ttl": int64(5000)}})
	require.NoError(t, err)
	require.NoError(t, vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Durable: true}))

	require.NoError(t, vh.Queues.Change("q", amqp.Table{"x-message-ttl": int64(2000), "x-lock-duration": int64(700)}))
	assert.Equal(t, int64(2000), q.Settings().TTLMillis)
	assert.Equal(t, int64(700), q.Settings().LockMillis)
	require.NoError(t, vh.Queues.Change("q", amqp.Table{"x-message-ttl": nil}))
	assert.Equal(t, int64(5000), q.Settings().TTLMillis, "the policy's")
	assert.Equal(t, amqp.Table{"x-lock-duration": int64(700), "x-max-length": int64(5)}, q.Declared().Args)
	assert.Equal(t, int64(1000), args["x-message-ttl"], "what was declared is the caller's")
	require.NoError(t, vh.Exchanges.Change("x", amqp.Table{"x-message-ttl": int64(9)}))
	x, err := vh.Exchanges.Get("x")
	require.NoError(t, err)
	assert.Equal(t, amqp.Table{"x-message-ttl": int64(9)}, x.Args)

	for want, change := range map[string]func() error{
		"NOT_FOUND - no queue 'none' in vhost '/'":                                                      func() error { return vh.Queues.Change("none", nil) },
		"NOT_FOUND - no exchange 'none' in vhost '/'":                                                   func() error { return vh.Exchanges.Change("none", nil) },
		"PRECONDITION_FAILED - the argument 'x-max-length' of queue 'q' in vhost '/' cannot be changed": func() error { return vh.Queues.Change("q", amqp.Table{"x-max-length": nil}) },
		"invalid arg 'x-message-ttl' for queue 'q' in vhost '/'":                                        func() error { return vh.Queues.Change("q", amqp.Table{"x-message-ttl": int64(-1)}) },
		"invalid arg 'x-lock-duration' for exchange 'x' in vhost '/'":                                   func() error { return vh.Exchanges.Change("x", amqp.Table{"x-lock-duration": int64(1)}) },
	} {
		assert.ErrorContains(t, change(), want)
	}
	assert.Equal(t, int64(5000), q.Settings().TTLMillis)

	_, err = vh.Queues.Delete(nil, "q", false, false)
	require.NoError(t, err)
	require.NoError(t, vh.Exchanges.Delete("x", false))
	assert.Zero(t, vh.Registry().Memory.Used())
}
