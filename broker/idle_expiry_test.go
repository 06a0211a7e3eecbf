package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

const idlePeriod = 5 * time.Minute

func (x *testBroker) exists(name string) bool {
	_, err := x.vh.Queues.Get(name)
	return err == nil
}

// TestDelayedMessagesKeepIdleQueues: those that a delayed message names by its keys in the default exchange, and no others. They count for x-auto-delete-on-idle, not for x-expires.
func TestDelayedMessagesKeepIdleQueues(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	inBubble(t, broker.Options{Log: zap.New(core)}, func(x *testBroker) {
		idle := amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()}
		named, others := []string{"named", "copied"}, []string{"matched", "headed", "unbound", "unmatched", "elsewhere"}
		for _, name := range append(named, others...) {
			x.queue(name, idle)
		}
		x.queue("expires", amqp.Table{"x-expires": idlePeriod.Milliseconds(), "x-auto-delete-on-idle": 2 * idlePeriod.Milliseconds()})
		for name, kind := range map[string]string{"x": "fanout", "topic": "topic", "h": "headers"} {
			require.NoError(t, x.vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: kind}))
		}
		delayed := func(exchange, key string, more amqp.Table) {
			headers := amqp.Table{"x-delay": time.Hour.Milliseconds()}
			for k, v := range more {
				headers[k] = v
			}
			x.publish(exchange, key, "m", "", headers)
		}
		delayed("", "named", amqp.Table{"CC": []any{"copied"}})
		delayed("", "expires", nil)
		for i := range 200 { // more than one look
			delayed("x", fmt.Sprint("key.", i), nil)
		}
		delayed("h", "", amqp.Table{"colour": "red"})
		// They are routed when they are due: a binding that comes later counts.
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "x", Destination: "topic", ToExchange: true}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "topic", Destination: "matched", RoutingKey: "*.199"}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "topic", Destination: "unmatched", RoutingKey: "*.200"}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "h", Destination: "headed", Args: amqp.Table{"colour": "red"}}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "h", Destination: "elsewhere", Args: amqp.Table{"colour": "blue"}}))

		after(idlePeriod + time.Second)
		for _, name := range named {
			assert.True(t, x.exists(name), name)
		}
		for _, name := range append(others, "expires") {
			assert.False(t, x.exists(name), name)
		}
		after(time.Hour - idlePeriod)
		for _, name := range named {
			require.True(t, x.exists(name), name)
			q, _ := x.vh.Queues.Get(name)
			ready, _, _ := q.Messages.Counts()
			assert.Equal(t, 1, ready, name)
		}
		after(idlePeriod)
		for _, name := range named {
			assert.False(t, x.exists(name), "%s: a message in it protects nothing", name)
		}
		told := map[string]int64{}
		for _, entry := range logs.FilterMessageSnippet("queue expired").All() {
			told[entry.ContextMap()["queue"].(string)] = entry.ContextMap()["messages"].(int64)
		}
		assert.Equal(t, map[string]int64{"named": 1, "matched": 0, "copied": 1, "headed": 0, "unbound": 0, "unmatched": 0, "elsewhere": 0, "expires": 0}, told)
	})
}

func TestIdleQueueGoesWhenItsDelayedMessageIsCancelled(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.queue("q", amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()})
		x.publish("", "q", "m", "", amqp.Table{"x-delay": (24 * time.Hour).Milliseconds()})
		x.publish("", "other", "m", "", amqp.Table{"x-delay": (48 * time.Hour).Milliseconds()})
		after(3*idlePeriod + time.Minute)
		require.True(t, x.exists("q"))
		page, _ := x.vh.Delayed(0, 1)
		require.True(t, x.vh.CancelDelayed(page[0].Ref))
		after(idlePeriod)
		assert.False(t, x.exists("q"))
	})
}

// TestDelayedMessageOnItsWayKeepsAnIdleQueue, though it is due at the instant at which the queue would go.
func TestDelayedMessageOnItsWayKeepsAnIdleQueue(t *testing.T) {
	for n := range 50 {
		inBubble(t, broker.Options{}, func(x *testBroker) {
			q := x.queue("q", amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()})
			after(time.Duration(n%2) * idlePeriod / 2)
			delay := idlePeriod * time.Duration(1+n%3)
			for range 1 + n {
				x.publish("", "q", "m", "", amqp.Table{"x-delay": delay.Milliseconds()})
			}
			after(delay + time.Second)
			require.True(t, x.exists("q"), "after %s", delay)
			require.Len(t, x.drain(q), 1+n)
		})
	}
}

// TestUsedQueuesOutliveDelayedMessages: delayed messages for others change nothing about what counts as use.
func TestUsedQueuesOutliveDelayedMessages(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()})
		x.publish("", "other", "m", "", amqp.Table{"x-delay": (24 * time.Hour).Milliseconds()})
		c := newSink(t, q, true)
		after(3 * idlePeriod)
		require.True(t, x.exists("q"))
		c.c.Cancel()
		after(idlePeriod - time.Second)
		x.publish("", "q", "m", "", nil)
		after(2 * time.Second)
		require.True(t, x.exists("q"))
		after(idlePeriod)
		assert.False(t, x.exists("q"))
	})
}

// TestUseOfAnIdleQueue: what Microsoft's page lists under "Idleness", for the queue as a
// subscription too.
func TestUseOfAnIdleQueue(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		args := amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds(), "x-dead-letter-queue": true}
		q := x.queue("q", args)
		dead, err := x.vh.Queues.Get(deadLetters)
		require.NoError(t, err)
		reject := func() {
			x.publish("", "q", "m", "", nil)
			m, _ := x.get(q, false)
			q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
		}
		reject()
		deferred, later := x.queue("q"+policy.DeferredSuffix, nil), x.queue(deadLetters+policy.DeferredSuffix, nil)
		var held message
		for _, use := range []struct {
			name string
			do   func()
		}{
			{"binding", func() { require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: "q"})) }},
			{"binding again", func() { require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: "q"})) }},
			{"unbinding", func() { require.NoError(t, x.vh.Unbind(nil, broker.Binding{Source: "amq.fanout", Destination: "q"})) }},
			{"purge", func() { q.Messages.Purge() }},
			{"policy", func() { x.govern(policy.Definition{"max-length": int64(9)}) }},
			{"no policy", func() { x.clear("p") }},
			{"get of a dead letter", func() { held, _ = x.get(dead, false) }},
			{"settlement of it", func() { dead.Messages.Settle(broker.Requeue, []queue.Seq{held.seq}, nil) }},
			{"peek at it", func() {
				_, err := dead.Messages.Browse(broker.Browse{Count: 1})
				require.NoError(t, err)
			}},
			{"get of what is deferred", func() { x.get(deferred, true) }},
			{"get of a dead letter that is deferred", func() { x.get(later, true) }},
		} {
			after(idlePeriod - 5*time.Second)
			use.do()
			after(4 * time.Second)
			require.True(t, x.exists("q"), use.name)
		}
		s := newSink(t, dead, true)
		after(3 * idlePeriod)
		require.True(t, x.exists("q"), "its dead letters are consumed")
		s.c.Cancel()
		after(idlePeriod - time.Second)
		require.True(t, x.exists("q"))
		after(2 * time.Second)
		require.False(t, x.exists("q"))
		require.False(t, x.exists(deadLetters))
	})
}

// TestArrivingDeadLettersAreNoUse: a queue whose messages only expire goes.
func TestArrivingDeadLettersAreNoUse(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.queue("q", amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds(), "x-dead-letter-queue": true})
		x.publish("", "q", "m", "200000", nil)
		after(200 * time.Second)
		x.expire(x.deadlines())
		dead, err := x.vh.Queues.Get(deadLetters)
		require.NoError(t, err)
		require.Equal(t, 1, x.ready(dead))
		after(idlePeriod - 199*time.Second)
		assert.False(t, x.exists("q"))
	})
}

// TestIdlePeriodOfAPolicy holds from when the policy is set, and no longer than it is.
func TestIdlePeriodOfAPolicy(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		set := func(name, pattern string, priority int64, period time.Duration) {
			x.policy(policy.User, policy.Policy{Name: name, Pattern: pattern, Priority: priority, Definition: policy.Definition{"auto-delete-on-idle": period.Milliseconds()}})
		}
		for _, name := range []string{"q", "q.used", "q.spared"} {
			x.queue(name, nil)
		}
		x.queue("q.short", amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds(), "x-dead-letter-queue": true})
		_, err := x.vh.Queues.Declare(nil, policy.UndeliverableQueue, broker.QueueDeclare{Durable: true})
		require.NoError(t, err)
		set("p", ".*", 0, 2*idlePeriod)
		after(idlePeriod - time.Second)
		require.True(t, x.exists("q.short"))
		after(2 * time.Second)
		require.False(t, x.exists("q.short"), "the lower of two")
		x.publish("", "q.used", "m", "", nil)
		x.policy(policy.User, policy.Policy{Name: "spare", Pattern: "spared", Priority: 1, Definition: policy.Definition{"max-length": int64(5)}})
		after(idlePeriod)
		assert.False(t, x.exists("q"))
		assert.True(t, x.exists("q.used"))
		set("p", ".*", 0, idlePeriod)
		after(idlePeriod - time.Second)
		assert.True(t, x.exists("q.used"), "a shorter period counts from when it is set")
		after(2 * time.Second)
		assert.False(t, x.exists("q.used"))
		x.queue("q.new", nil)
		after(idlePeriod - time.Second)
		x.clear("p")
		after(time.Hour)
		for _, name := range []string{"q.new", "q.spared", policy.UndeliverableQueue} {
			assert.True(t, x.exists(name), name)
		}
		assert.NoError(t, x.vh.Exchanges.Check("amq.topic"))
	})
}

func TestIdleMinimum(t *testing.T) {
	inBubble(t, broker.Options{IdleMinimum: 1500 * time.Microsecond}, func(x *testBroker) {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-auto-delete-on-idle": int32(1)}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg 'x-auto-delete-on-idle' for queue 'q' in vhost '/': 1 is less than CURFEW_IDLE_MINIMUM, which is 2 ms", text(err))
		x.queue("q", amqp.Table{"x-auto-delete-on-idle": int32(2)})
		after(3 * time.Millisecond)
		assert.False(t, x.exists("q"))
		_, err = x.vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"auto-delete-on-idle": int64(1)}})
		assert.EqualError(t, err, "Validation failed\n\n1 is not a valid idle period: the minimum is 2\n")
		_, err = x.vh.Policies.Preview(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"auto-delete-on-idle": int64(1)}})
		assert.Error(t, err)
		x.govern(policy.Definition{"auto-delete-on-idle": int64(2)})
	})
}

// TestIdleMinimumThatWasRaised: what was saved with a shorter period stays, without it.
func TestIdleMinimumThatWasRaised(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}, IdleMinimum: time.Second}
	x := openTestBroker(t, o)
	idle := amqp.Table{"x-auto-delete-on-idle": int64(60_000)}
	x.durable("q", idle)
	require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Durable: true, Args: idle}))
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"auto-delete-on-idle": int64(1000)}})
	require.NoError(t, x.b.Close())
	core, logs := observer.New(zap.WarnLevel)
	o.IdleMinimum, o.Log = 0, zap.New(core)
	x = openTestBroker(t, o)
	assert.True(t, x.exists("q"))
	assert.NoError(t, x.vh.Exchanges.Check("x"))
	p, _ := x.vh.Policies.Get(policy.User, "p")
	assert.Contains(t, p.NotInForce, "1000 is not a valid idle period: the minimum is 300000")
	assert.Equal(t, 1, logs.FilterMessageSnippet("saved exchange").Len())
	assert.Equal(t, 1, logs.FilterMessageSnippet("saved queue").Len())
	require.NoError(t, x.b.Close())
}

// TestUseOfASubscription: a queue that is bound to a topic is deleted unless somebody receives from it, peeks, binds or unbinds it, renews a lock or
// declares it again (Service Bus: AutoDeleteOnIdle, subscriptions). What is sent to the topic does not keep it; what is sent to the queue itself does.
func TestUseOfASubscription(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		idle := amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()}
		x.exchange("topic", "topic", nil)
		x.exchange("behind", "headers", nil)
		x.bindExchange("topic", "behind")
		q := x.queue("q", idle)
		x.bind("topic", "q", "#")
		x.bind("behind", "q", "")
		var held message
		for _, use := range []struct {
			name string
			do   func()
		}{
			{"get", func() { held, _ = x.get(q, false) }},
			{"settlement", func() { q.Messages.Settle(broker.Ack, []queue.Seq{held.seq}, nil) }},
			{"peek", func() {
				_, err := q.Messages.Browse(broker.Browse{Count: 1})
				require.NoError(t, err)
			}},
			{"binding", func() { x.bind("topic", "q", "a.*") }},
			{"unbinding", func() {
				require.NoError(t, x.vh.Unbind(nil, broker.Binding{Source: "topic", Destination: "q", RoutingKey: "a.*"}))
			}},
			{"declare", func() { x.queue("q", idle) }},
			{"send to the queue by its name", func() { x.publish("", "q", "m", "", nil) }},
		} {
			for range 4 { // a minute apart
				x.publish("topic", "a.b", "m", "", nil)
				after(time.Minute)
			}
			require.True(t, x.exists("q"), use.name)
			use.do()
		}
		for range 5 {
			require.True(t, x.exists("q"))
			x.publish("topic", "a.b", "m", "", nil)
			x.publish("topic", "a.b", "m", "", amqp.Table{"x-delay": time.Hour.Milliseconds()})
			after(time.Minute)
		}
		after(time.Second)
		assert.False(t, x.exists("q"), "only what the topic brought")
	})
}
