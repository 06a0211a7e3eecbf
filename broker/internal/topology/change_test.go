package topology_test

import (
	"strconv"
	"sync"
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

	require.NoError(t, vh.Queues.Change(nil, "q", amqp.Table{"x-message-ttl": int64(2000), "x-lock-duration": int64(700)}))
	assert.Equal(t, int64(2000), q.Settings().TTLMillis)
	assert.Equal(t, int64(700), q.Settings().LockMillis)
	require.NoError(t, vh.Queues.Change(nil, "q", amqp.Table{"x-message-ttl": nil}))
	assert.Equal(t, int64(5000), q.Settings().TTLMillis, "the policy's")
	assert.Equal(t, amqp.Table{"x-lock-duration": int64(700), "x-max-length": int64(5)}, q.Declared().Args)
	assert.Equal(t, int64(1000), args["x-message-ttl"], "what was declared is the caller's")
	require.NoError(t, vh.Exchanges.Change("x", amqp.Table{"x-message-ttl": int64(9)}))
	x, err := vh.Exchanges.Get("x")
	require.NoError(t, err)
	assert.Equal(t, amqp.Table{"x-message-ttl": int64(9)}, x.Args)
	_, err = vh.Queues.Declare("owner", "own", broker.QueueDeclare{Exclusive: true, Args: amqp.Table{"x-dead-letter-queue": true}})
	require.NoError(t, err)
	for _, name := range []string{policy.UndeliverableQueue, "q" + policy.DeferredSuffix} {
		_, err = vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true})
		require.NoError(t, err)
	}

	idle := amqp.Table{"x-auto-delete-on-idle": int64(600_000)}
	for want, change := range map[string]func() error{
		"NOT_FOUND - no queue 'none' in vhost '/'":                                                           func() error { return vh.Queues.Change(nil, "none", nil) },
		"NOT_FOUND - no exchange 'none' in vhost '/'":                                                        func() error { return vh.Exchanges.Change("none", nil) },
		"PRECONDITION_FAILED - the argument 'x-max-length' of queue 'q' in vhost '/' cannot be changed":      func() error { return vh.Queues.Change(nil, "q", amqp.Table{"x-max-length": nil}) },
		"invalid arg 'x-message-ttl' for queue 'q' in vhost '/'":                                             func() error { return vh.Queues.Change(nil, "q", amqp.Table{"x-message-ttl": int64(-1)}) },
		"invalid arg 'x-lock-duration' for exchange 'x' in vhost '/'":                                        func() error { return vh.Exchanges.Change("x", amqp.Table{"x-lock-duration": int64(1)}) },
		"ACCESS_REFUSED - change of system exchange 'amq.topic' in vhost '/' not allowed":                    func() error { return vh.Exchanges.Change("amq.topic", idle) },
		"RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'own' in vhost '/'":                func() error { return vh.Queues.Change("other", "own", idle) },
		"PRECONDITION_FAILED - the arguments of queue 'own/$deadletterqueue' in vhost '/' cannot be changed": func() error { return vh.Queues.Change("owner", "own/$deadletterqueue", idle) },
		"PRECONDITION_FAILED - the arguments of queue 'curfew.undeliverable' in vhost '/' cannot be changed": func() error { return vh.Queues.Change(nil, policy.UndeliverableQueue, idle) },
		"PRECONDITION_FAILED - the arguments of queue 'q/$deferred' in vhost '/' cannot be changed":          func() error { return vh.Queues.Change(nil, "q/$deferred", idle) },
	} {
		assert.ErrorContains(t, change(), want)
	}
	assert.Equal(t, int64(5000), q.Settings().TTLMillis)

	vh.Queues.Release("owner")
	_, err = vh.Queues.Delete(nil, policy.UndeliverableQueue, broker.QueueDeletion{})
	require.NoError(t, err)
	_, err = vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	require.NoError(t, vh.Exchanges.Delete("x", false))
	assert.Zero(t, vh.Registry().Memory.Used())
}

// TestDeferredMessagesFollow: deferred messages are settled as the arguments of their queue say, also if an update did not get to
// them or two came at once, and keep a lock. Fewer arguments are no matter of memory.
func TestDeferredMessagesFollow(t *testing.T) {
	_, vh := declaringBroker(t, broker.Options{MemoryLimit: 1 << 20, MemoryInUse: func() int64 { return 0 }})
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-lock-duration": int64(700), "x-max-delivery-count": int64(3), policy.DeadLetterExpiredArg: false}})
	require.NoError(t, err)
	aside, err := vh.Queues.Declare(nil, "q"+policy.DeferredSuffix, broker.QueueDeclare{Args: amqp.Table{"x-lock-duration": int64(1), "x-overflow": "drop-head"}})
	require.NoError(t, err)
	follow := func(lock int64, changes, more amqp.Table) {
		t.Helper()
		require.NoError(t, vh.Queues.Change(nil, "q", changes))
		more["x-lock-duration"], more["x-overflow"] = lock, "drop-head"
		assert.Equal(t, more, aside.Declared().Args)
	}
	follow(700, nil, amqp.Table{"x-max-delivery-count": int64(3), policy.DeadLetterExpiredArg: false})
	follow(800, amqp.Table{"x-lock-duration": int64(800), "x-max-delivery-count": int64(4), "x-message-ttl": int64(5)}, amqp.Table{"x-max-delivery-count": int64(4), policy.DeadLetterExpiredArg: false})

	for i := range int64(100) { // of two updates at once, the one that the queue has
		var both sync.WaitGroup
		for n := range int64(2) {
			both.Go(func() {
				assert.NoError(t, vh.Queues.Change(nil, "q", amqp.Table{"x-lock-duration": 1000 + 2*i + n}))
			})
		}
		both.Wait()
		require.Equal(t, q.Settings().LockMillis, aside.Declared().Args["x-lock-duration"])
	}

	lock := q.Settings().LockMillis
	vh.Registry().Memory.Low(true)
	for i := 0; err == nil; i++ {
		err = vh.Exchanges.Declare(strconv.Itoa(i), broker.ExchangeDeclare{Kind: "fanout"})
	}
	require.ErrorContains(t, err, "no memory")
	_, err = vh.Queues.Declare(nil, policy.UndeliverableQueue, broker.QueueDeclare{Durable: true}) // takes more than there is
	require.NoError(t, err)
	follow(lock, amqp.Table{"x-lock-duration": nil, "x-max-delivery-count": nil, policy.DeadLetterExpiredArg: nil}, amqp.Table{})
}
