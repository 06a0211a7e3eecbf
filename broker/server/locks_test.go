package server_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/policy"
	"curfew/broker/server"
)

// TestClientRenewsItsLock with what every client has: a header of its delivery, and direct
// reply-to.
func TestClientRenewsItsLock(t *testing.T) {
	run(t, server.Options{ConsumerTimeout: time.Minute}, func(x *site) {
		c := x.connect()
		ch := x.channel(c)
		x.queue(ch, "q", amqp091.Table{"x-lock-duration": int32(30_000), "x-delivery-deadline": true})
		deliveries, err := ch.Consume("q", "", false, false, false, false, nil)
		require.NoError(t, err)
		asks := x.channel(c) // not the channel of the delivery
		answers, err := asks.Consume(broker.ReplyQueue, "", true, false, false, false, nil)
		require.NoError(t, err)
		x.publish(x.channel(c), "q", "m")
		got := x.settled(deliveries)
		require.Len(t, got, 1)
		token := got[0].Headers["x-lock-token"].(string)
		assert.Equal(t, time.Now().UnixMilli()+30_000, got[0].Headers["x-locked-until"])
		renew := func() (answer broker.LockAnswer) {
			require.NoError(t, asks.Publish("", broker.LockQueue, true, false,
				amqp091.Publishing{ReplyTo: broker.ReplyQueue, CorrelationId: "7", Body: []byte(token)}))
			replies := x.settled(answers)
			require.Len(t, replies, 1)
			assert.Equal(t, []string{"7", "curfew.lock-answer"}, []string{replies[0].CorrelationId, replies[0].Type})
			require.NoError(t, json.Unmarshal(replies[0].Body, &answer))
			return answer
		}
		for range 6 { // longer than the server's timeout for deliveries without a lock
			time.Sleep(29 * time.Second)
			assert.Equal(t, broker.LockAnswer{Outcome: "renewed", LockedUntil: time.Now().UnixMilli() + 30_000}, renew())
		}
		require.NoError(t, got[0].Ack(false))
		assert.Empty(t, x.settled(deliveries))
		assert.Equal(t, "lost", renew().Outcome)
		_, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		assert.False(t, ok)
	})
}

// TestLapsedDeliveryIsTimedOut: a delivery that is neither settled nor renewed holds its
// prefetch no longer than others.
func TestLapsedDeliveryIsTimedOut(t *testing.T) {
	run(t, server.Options{ConsumerTimeout: time.Minute}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", amqp091.Table{"x-lock-duration": int32(30_000)})
		x.publish(ch, "q", "m")
		_, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		closes := ch.NotifyClose(make(chan *amqp091.Error, 1))
		time.Sleep(2 * time.Minute)
		assert.Contains(t, closed(closes), "delivery acknowledgement on channel 1 timed out")
	})
}

func TestRequestInATransactionActsAtOnce(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch, other := x.channel(c), x.channel(c)
		x.queue(ch, "q", amqp091.Table{"x-lock-duration": int32(1000), "x-delivery-deadline": true})
		x.queue(ch, "answers", nil)
		x.publish(ch, "q", "m")
		got, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, other.Tx())
		time.Sleep(900 * time.Millisecond)
		require.NoError(t, other.Publish("", broker.LockQueue, false, false,
			amqp091.Publishing{ReplyTo: "answers", Body: []byte(got.Headers["x-lock-token"].(string))}))
		time.Sleep(900 * time.Millisecond)
		require.NoError(t, got.Ack(false), "locked still")
		assert.Zero(t, x.ready("answers"))
		require.NoError(t, other.TxCommit())
		assert.Equal(t, 1, x.ready("answers"))
	})
}

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
		assert.Equal(t, amqp091.Queue{Name: "Q/$deadletterqueue", Messages: 2}, q)
		q, err = ch.QueueDeclare("Q/$DEADLETTERQUEUE", false, false, false, false, nil)
		require.NoError(t, err)
		assert.Equal(t, "Q/$deadletterqueue", q.Name)
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

// TestDeliveryWithoutALockIsTimedOut: a policy that locks later deliveries does not affect
// it.
func TestDeliveryWithoutALockIsTimedOut(t *testing.T) {
	run(t, server.Options{ConsumerTimeout: time.Minute}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "m")
		_, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		vh, _ := x.b.VHost("/")
		_, err = vh.SetPolicy(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"lock-duration": int64(30_000)}})
		require.NoError(t, err)
		closes := ch.NotifyClose(make(chan *amqp091.Error, 1))
		time.Sleep(3 * time.Minute)
		assert.Contains(t, closed(closes), "delivery acknowledgement on channel 1 timed out")
	})
}
