package server_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
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
