package server_test

import (
	"testing"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/server"
)

func TestPrefetchOfAChannelIsShared(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "a", nil)
		x.queue(ch, "b", nil)
		x.publish(ch, "a", "a0", "a1")
		x.publish(ch, "b", "b0", "b1")
		require.NoError(t, ch.Qos(3, 0, true))
		a, b := x.consume(ch, "a", false), x.consume(ch, "b", false)
		fromA, fromB := x.settled(a), x.settled(b)
		require.Equal(t, []string{"a0", "a1"}, bodies(fromA))
		require.Equal(t, []string{"b0"}, bodies(fromB))
		require.NoError(t, fromA[0].Ack(false))
		assert.Equal(t, []string{"b1"}, bodies(x.settled(b)), "a's ack makes room for b's message")
		require.NoError(t, ch.Qos(0, 0, true))
		x.publish(ch, "b", "b2")
		assert.Equal(t, []string{"b2"}, bodies(x.settled(b)))
	})
}

// A consumer that acks gets another message at once, and the others still get their turns.
func TestPrefetchOfAChannelTakesTurns(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		require.NoError(t, ch.Qos(2, 0, true))
		var all []<-chan amqp091.Delivery
		for _, name := range []string{"a", "b", "c"} {
			x.queue(ch, name, nil)
			x.publish(ch, name, name+"0", name+"1", name+"2", name+"3")
			all = append(all, x.consume(ch, name, false))
		}
		var order []string
		for len(order) < 12 {
			var next []amqp091.Delivery
			for _, d := range all {
				next = append(next, x.settled(d)...)
			}
			require.NotEmpty(t, next, "somebody is served")
			for _, d := range next {
				order = append(order, string(d.Body))
				require.NoError(t, d.Ack(false))
			}
		}
		assert.Equal(t, []string{"a0", "a1", "a2", "b0", "a3", "c0", "b1", "c1", "b2", "c2", "b3", "c3"}, order)
	})
}

func TestPrefetchOfAChannelAndConsumersWithoutAcks(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		require.NoError(t, ch.Qos(1, 0, true))
		x.queue(ch, "q", nil)
		x.queue(ch, "free", nil)
		d, free := x.consume(ch, "q", false), x.consume(ch, "free", true)
		x.publish(ch, "free", "0", "1")
		assert.Equal(t, []string{"0", "1"}, bodies(x.settled(free)), "they do not count")
		x.publish(ch, "q", "held")
		held := x.settled(d)
		require.Len(t, held, 1)
		x.publish(ch, "free", "2", "3")
		require.Empty(t, x.settled(free), "they wait for the limit")
		require.NoError(t, held[0].Ack(false))
		assert.Equal(t, []string{"2", "3"}, bodies(x.settled(free)))
		x.publish(ch, "q", "another", "waits")
		require.Len(t, x.settled(d), 1)
		require.NoError(t, ch.Qos(0, 0, false))
		assert.Equal(t, []string{"waits"}, bodies(x.settled(d)), "a prefetch of consumers ends that of the channel")
	})
}

// A waiting consumer that is cancelled is in nobody's way.
func TestPrefetchOfAChannelAndCancel(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		require.NoError(t, ch.Qos(1, 0, true))
		var all []<-chan amqp091.Delivery
		for _, name := range []string{"a", "b", "c"} {
			x.queue(ch, name, nil)
			x.publish(ch, name, name+"0", name+"1")
			d, err := ch.Consume(name, name, false, false, false, false, nil)
			require.NoError(t, err)
			all = append(all, d)
		}
		held := x.settled(all[0])
		require.Len(t, held, 1)
		require.NoError(t, ch.Cancel("b", false))
		other := x.channel(x.connect())
		_, err := other.QueueDelete("a", false, false, false)
		require.NoError(t, err)
		require.NoError(t, held[0].Ack(false))
		assert.Equal(t, []string{"c0"}, bodies(x.settled(all[2])))
	})
}
