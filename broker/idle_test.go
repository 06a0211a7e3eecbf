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
)

const idlePeriod = 5 * time.Minute

func (x *bench) exists(name string) bool {
	_, err := x.vh.Queue(name)
	return err == nil
}

// TestDelayedMessagesKeepIdleQueues: those that a delayed message would go to now,
// whatever way, and no others. They count for x-auto-delete-on-idle, not for x-expires.
func TestDelayedMessagesKeepIdleQueues(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	inBubble(t, broker.Options{Log: zap.New(core)}, func(x *bench) {
		idle := amqp.Table{"x-auto-delete-on-idle": idlePeriod.Milliseconds()}
		bound, others := []string{"named", "matched", "copied", "headed"}, []string{"unbound", "unmatched", "elsewhere"}
		for _, name := range append(bound, others...) {
			x.queue(name, idle)
		}
		x.queue("expires", amqp.Table{"x-expires": idlePeriod.Milliseconds(), "x-auto-delete-on-idle": 2 * idlePeriod.Milliseconds()})
		for name, kind := range map[string]string{"x": "fanout", "topic": "topic", "h": "headers"} {
			require.NoError(t, x.vh.DeclareExchange(name, broker.ExchangeDeclare{Kind: kind}))
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
		for _, name := range bound {
			assert.True(t, x.exists(name), name)
		}
		for _, name := range append(others, "expires") {
			assert.False(t, x.exists(name), name)
		}
		after(time.Hour - idlePeriod)
		for _, name := range bound {
			require.True(t, x.exists(name), name)
			q, _ := x.vh.Queue(name)
			ready, _, _ := q.Counts()
			assert.Equal(t, 1, ready, name)
		}
		after(idlePeriod)
		for _, name := range bound {
			assert.False(t, x.exists(name), "%s: a message in it protects nothing", name)
		}
		told := map[string]int64{}
		for _, entry := range logs.FilterMessageSnippet("queue expired").All() {
			told[entry.ContextMap()["queue"].(string)] = entry.ContextMap()["messages"].(int64)
		}
		assert.Equal(t, map[string]int64{"named": 1, "matched": 1, "copied": 1, "headed": 1, "unbound": 0, "unmatched": 0, "elsewhere": 0, "expires": 0}, told)
	})
}

func TestIdleQueueGoesWhenItsDelayedMessageIsCancelled(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *bench) {
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
		inBubble(t, broker.Options{}, func(x *bench) {
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
	inBubble(t, broker.Options{}, func(x *bench) {
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
