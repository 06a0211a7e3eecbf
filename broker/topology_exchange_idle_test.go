package broker_test

import (
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

func (x *testBroker) exchange(name, kind string, args amqp.Table) {
	x.t.Helper()
	require.NoError(x.t, x.vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: kind, Args: args}))
}

// hasExchange looks without use.
func (x *testBroker) hasExchange(name string) bool {
	_, err := x.vh.Exchanges.Get(name)
	return err == nil
}

func (x *testBroker) bind(source, queue, key string) {
	x.t.Helper()
	require.NoError(x.t, x.vh.Bind(nil, broker.Binding{Source: source, Destination: queue, RoutingKey: key}))
}

func (x *testBroker) bindExchange(source, destination string) {
	x.t.Helper()
	require.NoError(x.t, x.vh.Bind(nil, broker.Binding{Source: source, Destination: destination, ToExchange: true}))
}

// TestUseOfAnIdleExchange: what Microsoft's page lists for a topic under "Idleness". Each
// use keeps it for a period from then, and without any it goes, and the queues stay.
func TestUseOfAnIdleExchange(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	inBubble(t, broker.Options{Log: zap.New(core)}, func(x *testBroker) {
		idle := amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()}
		x.exchange("x", "topic", idle)
		x.exchange("between", "fanout", nil)
		x.exchange("alternating", "direct", amqp.Table{"alternate-exchange": "x"})
		q, dying := x.queue("q", amqp.Table{"x-dead-letter-queue": true}), x.queue("dying", amqp.Table{"x-dead-letter-exchange": "x"})
		far := x.queue("far", nil)
		var held message
		dead, err := x.vh.Queues.Get(deadLetters)
		require.NoError(t, err)
		for _, use := range []struct {
			name string
			do   func()
		}{
			{"send", func() { x.publish("x", "a", "m", "", nil) }},
			{"another send", func() { x.publish("x", "a", "m", "", nil) }},
			{"send that is routed", func() { x.bind("x", "q", "a"); after(time.Second); x.publish("x", "a", "m", "", nil) }},
			{"declare", func() { x.exchange("x", "topic", idle) }},
			{"passive declare", func() { require.NoError(t, x.vh.Exchanges.Check("x")) }},
			{"get from a queue", func() { held, _ = x.get(q, false) }},
			{"settlement", func() { q.Messages.Settle(broker.Reject, []queue.Seq{held.seq}, nil) }},
			{"get from its dead letters", func() { x.get(dead, true) }},
			{"get that finds none", func() { x.get(q, true) }},
			{"peek", func() {
				_, err := q.Messages.Browse(broker.Browse{Count: 1})
				require.NoError(t, err)
			}},
			{"binding to it", func() { x.bindExchange("between", "x") }},
			{"send through another exchange", func() { x.publish("between", "b", "m", "", nil) }},
			{"send to an exchange whose alternate it is", func() { x.publish("alternating", "b", "m", "", nil) }},
			{"dead letter", func() {
				x.publish("", "dying", "m", "", nil)
				m, _ := x.get(dying, false)
				dying.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
			}},
			{"unbinding", func() {
				require.NoError(t, x.vh.Unbind(nil, broker.Binding{Source: "x", Destination: "q", RoutingKey: "a"}))
			}},
			{"binding to another exchange", func() {
				x.exchange("on", "fanout", nil)
				x.bindExchange("x", "on")
				x.bindExchange("on", "x") // a ring
				x.bind("on", "far", "")
			}},
			{"get from a queue behind it", func() { x.get(far, true) }},
			{"deletion of that queue", func() {
				_, err := x.vh.Queues.Delete(nil, "far", broker.QueueDeletion{})
				require.NoError(t, err)
				x.bind("x", "q", "a")
			}},
			{"policy", func() {
				x.policy(policy.User, policy.Policy{Name: "p", Pattern: "^x$", Definition: policy.Definition{"alternate-exchange": "amq.fanout"}})
			}},
			{"no policy", func() { x.clear("p") }},
			{"redeclaring a queue", func() { x.queue("q", amqp.Table{"x-dead-letter-queue": true}) }},
		} {
			after(idlePeriod - 5*time.Second)
			use.do()
			after(4 * time.Second)
			require.True(t, x.hasExchange("x"), use.name)
		}
		s := newSink(t, q, true)
		after(3 * idlePeriod)
		require.True(t, x.hasExchange("x"), "somebody receives")
		s.c.Cancel()
		after(idlePeriod - time.Second)
		require.True(t, x.hasExchange("x"))
		after(2 * time.Second)
		require.False(t, x.hasExchange("x"))
		assert.True(t, x.exists("q"))
		assert.True(t, x.hasExchange("on"))
		told := logs.FilterMessageSnippet("exchange expired").All()
		require.Len(t, told, 1)
		assert.Equal(t, "x", told[0].ContextMap()["exchange"])
		after(time.Hour) // nothing is left of it that would ring
	})
}

// TestDelayedMessagesKeepIdleExchanges: those it would pass through now, whatever way.
func TestDelayedMessagesKeepIdleExchanges(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		idle := amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()}
		for _, name := range []string{"x", "behind", "other"} {
			x.exchange(name, "fanout", idle)
		}
		x.bindExchange("x", "behind")
		x.queue("q", nil)
		x.bind("behind", "q", "")
		for range 200 { // more than one look
			x.publish("", "elsewhere", "m", "", amqp.Table{"x-delay": time.Hour.Milliseconds()})
		}
		x.publish("x", "", "m", "", amqp.Table{"x-delay": time.Hour.Milliseconds()})
		after(idlePeriod + time.Second)
		assert.False(t, x.hasExchange("other"))
		after(time.Hour - idlePeriod)
		require.True(t, x.hasExchange("x"))
		q, _ := x.vh.Queues.Get("q")
		require.Equal(t, 1, x.ready(q))
		after(idlePeriod - 2*time.Second)
		require.True(t, x.hasExchange("x"), "it was routed")
		require.True(t, x.hasExchange("behind"), "it was routed")
		after(2 * time.Second)
		assert.False(t, x.hasExchange("x"))
	})
}

// TestIdleExchangesGoTogether: that what is bound to one goes for being idle does not keep it, whichever goes first.
func TestIdleExchangesGoTogether(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		idle := amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()}
		names := []string{"a", "b", "c", "d"}
		for _, name := range names {
			x.exchange(name, "fanout", idle)
		}
		x.queue("q", amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()})
		for i := range names[1:] {
			x.bindExchange(names[i], names[i+1])
			x.bindExchange(names[i+1], names[i])
		}
		x.bind("c", "q", "")
		after(idlePeriod)
		assert.False(t, x.exists("q"))
		for _, name := range names {
			assert.False(t, x.hasExchange(name), name)
		}
	})
}

// TestIdleExchangeKeepsTheUseOfAnExpiredQueue: the queue's last receive counts for the exchange's longer period.
func TestIdleExchangeKeepsTheUseOfAnExpiredQueue(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.exchange("x", "fanout", amqp.Table{"x-auto-delete-on-idle": 2 * idlePeriod.Milliseconds()})
		q := x.queue("q", amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()})
		x.bind("x", "q", "")
		after(idlePeriod - time.Second)
		x.get(q, true)
		after(idlePeriod)
		require.False(t, x.exists("q"))
		after(idlePeriod - time.Second)
		assert.True(t, x.hasExchange("x"))
		after(time.Second)
		assert.False(t, x.hasExchange("x"))
	})
}

func TestIdlePeriodOfAnExchangeByPolicy(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		set := func(period time.Duration) {
			x.policy(policy.User, policy.Policy{Name: "p", Pattern: ".*", Definition: policy.Definition{"auto-delete-on-idle": period.Milliseconds()}})
		}
		x.exchange("x", "fanout", nil)
		x.exchange("y", "fanout", nil)
		x.publish("x", "", "m", "", nil) // remembered
		after(time.Hour)
		set(2 * idlePeriod)
		after(idlePeriod)
		x.publish("x", "", "m", "", nil)
		after(idlePeriod + time.Second)
		require.True(t, x.hasExchange("x"))
		require.False(t, x.hasExchange("y"))
		set(idlePeriod)
		after(idlePeriod - time.Second)
		require.True(t, x.hasExchange("x"))
		x.clear("p")
		after(time.Hour)
		require.True(t, x.hasExchange("x"))
		set(idlePeriod)
		after(idlePeriod + time.Second)
		require.False(t, x.hasExchange("x"))
		for _, info := range x.vh.Exchanges.List() {
			assert.Regexp(t, `^(amq\..*|)$`, info.Name, "those every virtual host has stay")
		}
		assert.Len(t, x.vh.Exchanges.List(), 6)
	})
}

// TestIdleExchangeIsDeletedForGood, its definition with it.
func TestIdleExchangeIsDeletedForGood(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}, IdleMinimum: time.Millisecond}
	x := openTestBroker(t, o)
	for name, period := range map[string]int64{"gone": 1000, "stays": 3_600_000} {
		require.NoError(t, x.vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout", Durable: true, Args: amqp.Table{"x-auto-delete-on-idle": period}}))
		x.durable(name, nil)
		x.bind(name, name, "")
	}
	require.Eventually(t, func() bool { return !x.hasExchange("gone") }, time.Minute, time.Millisecond)
	x = restarted(t, o, x.b)
	assert.False(t, x.hasExchange("gone"))
	assert.True(t, x.hasExchange("stays"))
	assert.True(t, x.exists("gone"))
	require.NoError(t, x.b.Close())
}

// TestLookingIsNoUse: to ask where dead letters would go does not keep an exchange.
func TestLookingIsNoUse(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.exchange("x", "fanout", amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()})
		x.queue("q", nil)
		x.bind("x", "q", "")
		after(idlePeriod - time.Second)
		assert.Equal(t, []string{"q"}, x.vh.Destinations("x", ""))
		after(2 * time.Second)
		assert.False(t, x.hasExchange("x"))
	})
}
