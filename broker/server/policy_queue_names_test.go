package server_test

import (
	"testing"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/server"
)

// TestDeadLetterQueueInAnyCase: a Service Bus client writes $DeadLetterQueue.
func TestDeadLetterQueueInAnyCase(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch := x.channel(c)
		x.queue(ch, "Q", amqp091.Table{"x-dead-letter-queue": true})
		dead := func(n int) {
			for range n {
				x.publish(ch, "Q", "m")
				d, ok, err := ch.Get("Q", false)
				require.NoError(t, err)
				require.True(t, ok)
				require.NoError(t, d.Reject(false))
			}
		}
		dead(2)
		q, err := ch.QueueDeclarePassive("Q/$DeadLetterQueue", false, false, false, false, nil)
		require.NoError(t, err)
		assert.Equal(t, amqp091.Queue{Name: "Q/$DeadLetterQueue", Messages: 2}, q, "the name as it was sent: clients wait for it")
		q, err = ch.QueueDeclare("Q/$DEADLETTERQUEUE", false, false, false, false, nil)
		require.NoError(t, err)
		assert.Equal(t, "Q/$DEADLETTERQUEUE", q.Name)
		d, ok, err := ch.Get("Q/$deadLetterQueue", true)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, "Rejected", d.Headers["DeadLetterReason"])
		deliveries, err := ch.Consume("Q/$DeadletterQueue", "", true, false, false, false, nil)
		require.NoError(t, err)
		assert.Len(t, x.settled(deliveries), 1)
		other := x.channel(c)
		x.queue(other, "R", amqp091.Table{"x-dead-letter-queue": true})
		n, err := other.QueuePurge("R/$DeadLetterQueue", false)
		require.NoError(t, err)
		assert.Zero(t, n)

		_, err = x.channel(c).QueueDeclarePassive("q/$DeadLetterQueue", false, false, false, false, nil)
		assertException(t, err, 404, "NOT_FOUND - no queue 'q/$deadletterqueue' in vhost '/'")
		_, err = x.channel(c).QueueDeclare("S/$DeadLetterQueue", false, false, false, false, nil)
		assertException(t, err, 403, "ACCESS_REFUSED - queue name 'S/$deadletterqueue' is reserved; declare 'S' with x-dead-letter-queue")
		const only = "ACCESS_REFUSED - queue 'Q/$deadletterqueue' in vhost '/' takes the dead letters of queue 'Q' and nothing else"
		assertException(t, x.channel(c).QueueBind("Q/$DeadLetterQueue", "", "amq.fanout", false, nil), 403, only)
		_, err = x.channel(c).QueueDelete("Q/$DeadLetterQueue", false, false, false)
		assertException(t, err, 403, "ACCESS_REFUSED - queue 'Q/$deadletterqueue' in vhost '/' is deleted with queue 'Q'")
		sends := x.channel(c)
		closes := sends.NotifyClose(make(chan *amqp091.Error, 1))
		require.NoError(t, sends.Publish("", "Q/$DeadLetterQueue", false, false, amqp091.Publishing{}))
		x.settled(deliveries)
		assert.Equal(t, "403 "+only, closed(closes))
	})
}
