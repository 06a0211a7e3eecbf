package server_test

import (
	"bytes"
	"testing"
	"testing/synctest"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/server"
)

func TestPrefetchOfAConsumer(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "0", "1", "2", "3", "4")
		require.NoError(t, ch.Qos(2, 0, false))
		d := x.consume(ch, "q", false)
		got := x.settled(d)
		require.Equal(t, []string{"0", "1"}, bodies(got))
		require.NoError(t, got[0].Ack(false))
		more := x.settled(d)
		require.Equal(t, []string{"2"}, bodies(more), "one settled, one more")
		require.NoError(t, more[0].Ack(true))
		assert.Equal(t, []string{"3", "4"}, bodies(x.settled(d)))
	})
}

func TestWhatGetTookDoesNotCountAgainstPrefetch(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "0", "1")
		require.NoError(t, ch.Qos(1, 0, true))
		_, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, []string{"1"}, bodies(x.settled(x.consume(ch, "q", false))))
	})
}

func TestConsumersTakeTurns(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		a, b := x.consume(ch, "q", true), x.consume(ch, "q", true)
		x.publish(ch, "q", "0", "1", "2", "3")
		assert.Equal(t, []string{"0", "2"}, bodies(x.settled(a)))
		assert.Equal(t, []string{"1", "3"}, bodies(x.settled(b)))
	})
}

func TestSlowConsumerIsBounded(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch := x.channel(c)
		x.queue(ch, "q", nil)
		body := bytes.Repeat([]byte("x"), 64<<10)
		for range 100 {
			require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Body: body}))
		}
		slow := x.raw()
		slow.send(&amqp.BasicConsume{Queue: "q", NoAck: true})
		slow.expect(amqp.BasicConsumeOkID)
		synctest.Wait() // it reads nothing, so nothing moves
		q, err := ch.QueueDeclarePassive("q", false, false, false, false, nil)
		require.NoError(t, err)
		assert.Greater(t, q.Messages, 50, "the broker does not buffer for a client that does not read")
		for range 100 {
			slow.expect(amqp.BasicDeliverID)
		}
		require.NoError(t, slow.Close())
	})
}
