package server_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/broker/server"
)

func (x *site) holders(queue string) map[string]server.UnackedHolder {
	x.t.Helper()
	synctest.Wait()
	by := map[string]server.UnackedHolder{}
	for _, h := range x.s.UnackedHolders() {
		if h.Queue.Name == queue {
			by[h.Tag] = h
		}
	}
	return by
}

// TestWhoHoldsIt: consumers, cancelled ones, and channels that got messages, with those past their deadlines, as they are now.
func TestWhoHoldsIt(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		began := x.b.Now()
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		x.queue(ch, "other", nil)
		for i := range 6 {
			require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Expiration: strconv.Itoa(1000 * (i + 1))}))
		}
		x.publish(ch, "q", "it has no deadline")
		require.NoError(t, ch.Qos(2, 0, false))
		held := x.consume(ch, "q", false)
		_, err := ch.Consume("other", "idle", false, false, false, false, nil)
		require.NoError(t, err)
		first := <-held
		require.NoError(t, ch.Qos(3, 0, false))
		_, err = ch.Consume("q", "gone", false, false, false, false, nil)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, ch.Cancel("gone", false))
		time.Sleep(10 * time.Millisecond)
		for range 2 {
			_, ok, err := ch.Get("q", false)
			require.NoError(t, err)
			require.True(t, ok)
		}
		time.Sleep(3500 * time.Millisecond)

		by := x.holders("q")
		require.Len(t, by, 3)
		consumer, gone, got := by[first.ConsumerTag], by["gone"], by[""]
		assert.Equal(t, []int{2, 2, 2}, []int{consumer.Unacked, consumer.PastDeadline, consumer.Prefetch})
		assert.Equal(t, []any{began, began.AddMillis(1000), false, "guest"}, []any{consumer.Oldest, consumer.Earliest, consumer.Cancelled, consumer.User})
		assert.Equal(t, []any{3, 1, true, began.AddMillis(3000)}, []any{gone.Unacked, gone.PastDeadline, gone.Cancelled, gone.Earliest})
		assert.Equal(t, []any{2, 0, false, began.AddMillis(10)}, []any{got.Unacked, got.PastDeadline, got.Cancelled, got.Oldest}, "the sixth is not due, the seventh never")
		assert.Equal(t, "AMQP 0.9.1 Client", got.Properties["product"])
		idle := x.holders("other")["idle"]
		assert.Zero(t, idle.Unacked)
		assert.Zero(t, idle.Oldest)

		require.NoError(t, first.Ack(false))
		x.b.Reschedule(deadline.Ref{Deadline: gone.Earliest, Queue: gone.Queue.ID, Seq: 3}, x.b.Now().Add(time.Hour))
		by = x.holders("q")
		assert.Equal(t, []int{1, 1}, []int{by[first.ConsumerTag].Unacked, by[first.ConsumerTag].PastDeadline})
		assert.Zero(t, by["gone"].PastDeadline, "somebody has given it more time")
	})
}

// TestHoldersOfMany: no delivery is counted twice or passed over, however many there are and however they lie.
func TestHoldersOfMany(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		const many = 20_000
		for range many {
			require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Expiration: "1"}))
		}
		held, err := ch.Consume("q", "slow", false, false, false, false, nil)
		require.NoError(t, err)
		acked := 0
		for i := range many {
			if d := <-held; i%10 != 0 {
				require.NoError(t, d.Ack(false))
				acked++
			}
			if i == many-1 {
				break
			}
		}
		time.Sleep(time.Second)
		slow := x.holders("q")["slow"]
		assert.Equal(t, []int{many - acked, many - acked}, []int{slow.Unacked, slow.PastDeadline})
	})
}
