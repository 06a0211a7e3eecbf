package server_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/policy"
	"curfew/broker/server"
)

// closed returns why the channel was closed, or "open".
func closed(closes <-chan *amqp091.Error) string {
	synctest.Wait()
	select {
	case e := <-closes:
		return fmt.Sprint(e.Code, " ", e.Reason)
	default:
		return "open"
	}
}

const timedOut = "406 PRECONDITION_FAILED - delivery acknowledgement on channel %d timed out. Timeout value used: %d ms. " +

	"This timeout value can be configured, see consumers doc guide to learn more"

func TestChannelClosesWhenADeliveryIsNotAcknowledged(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch, other := x.channel(c), x.channel(c)
		x.queue(ch, "q", nil)
		require.NoError(t, ch.Qos(2, 0, false))
		deliveries, err := ch.Consume("q", "", false, false, false, false, nil)
		require.NoError(t, err)
		closes := ch.NotifyClose(make(chan *amqp091.Error, 1))
		x.publish(other, "q", "0", "1")
		got := x.settled(deliveries)
		require.Equal(t, []string{"0", "1"}, bodies(got))

		time.Sleep(29 * time.Minute)
		require.NoError(t, got[0].Ack(false))
		x.publish(other, "q", "2")
		time.Sleep(time.Minute)
		assert.Equal(t, "open", closed(closes), "not before its time")
		time.Sleep(20 * time.Second)
		assert.Equal(t, fmt.Sprintf(timedOut, 1, 1800000), closed(closes))
		for _, body := range []string{"1", "2"} {
			d, ok, err := other.Get("q", true)
			require.NoError(t, err)
			require.True(t, ok, "it came back")
			assert.Equal(t, body, string(d.Body))
			assert.True(t, d.Redelivered)
		}
		assert.NoError(t, c.Close(), "the connection lives")
	})
}

func TestTimeoutsOfQueueConsumerAndServer(t *testing.T) {
	run(t, server.Options{ConsumerTimeout: -1}, func(x *site) {
		c := x.connect()
		channels, closes := []*amqp091.Channel{}, []chan *amqp091.Error{}
		for range 4 {
			ch := x.channel(c)
			channels, closes = append(channels, ch), append(closes, ch.NotifyClose(make(chan *amqp091.Error, 1)))
		}
		x.queue(channels[0], "patient", nil)
		x.queue(channels[0], "brief", amqp091.Table{"x-consumer-timeout": int32(60_000)})
		for i, args := range []amqp091.Table{nil, {"x-consumer-timeout": int64(600_000)}} {
			_, err := channels[i].Consume("patient", "", false, false, false, false, args)
			require.NoError(t, err)
		}
		_, err := channels[2].Consume("brief", "", false, false, false, false, amqp091.Table{"x-consumer-timeout": int64(300_000)})
		require.NoError(t, err)
		synctest.Wait()
		x.publish(channels[0], "patient", "one each", "of the consumers")
		x.publish(channels[0], "brief", "m")
		time.Sleep(time.Second)

		all := func() (reasons []string) {
			for _, c := range closes {
				reasons = append(reasons, closed(c))
			}
			return reasons
		}
		time.Sleep(90 * time.Second)
		assert.Equal(t, []string{"open", "open", "open", "open"}, all(), "a consumer's own goes before its queue's")
		time.Sleep(4 * time.Minute)
		assert.Equal(t, []string{"open", "open", fmt.Sprintf(timedOut, 3, 300_000), "open"}, all())
		_, ok, err := channels[3].Get("brief", false)
		require.NoError(t, err)
		require.True(t, ok)
		time.Sleep(80 * time.Second)
		assert.Equal(t, fmt.Sprintf(timedOut, 4, 60_000), closed(closes[3]), "gets count, too")
		time.Sleep(5 * time.Minute)
		assert.Equal(t, fmt.Sprintf(timedOut, 2, 600_000), closed(closes[1]))
		time.Sleep(2 * time.Hour)
		assert.Equal(t, "open", closed(closes[0]), "no timeout")
	})
}

func TestTimeoutValueIsChecked(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		_, err := ch.Consume("q", "", false, false, false, false, amqp091.Table{"x-consumer-timeout": "soon"})
		assertException(t, err, 406, `PRECONDITION_FAILED - invalid arg 'x-consumer-timeout' for queue 'q' in vhost '/': "expected integer, got longstr"`)
	})
}

func TestLapsedLockIsAnsweredClearly(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		slow, other := x.channel(c), x.channel(c)
		x.queue(slow, "q", amqp091.Table{"x-lock-duration": int32(30_000)})
		require.NoError(t, slow.Qos(2, 0, false))
		deliveries, err := slow.Consume("q", "", false, false, false, false, nil)
		require.NoError(t, err)
		x.publish(other, "q", "0", "1", "2")
		late := x.settled(deliveries)
		require.Equal(t, []string{"0", "1"}, bodies(late))
		time.Sleep(20 * time.Second)
		got, ok, err := other.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, "2", string(got.Body))

		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		for _, body := range []string{"0", "1"} {
			d, ok, err := other.Get("q", true)
			require.NoError(t, err)
			require.True(t, ok)
			assert.Equal(t, body, string(d.Body))
			assert.True(t, d.Redelivered)
		}
		assert.Empty(t, x.settled(deliveries), "its prefetch is still full")

		closes := slow.NotifyClose(make(chan *amqp091.Error, 1))
		require.NoError(t, late[1].Ack(true))
		assert.Equal(t, "406 PRECONDITION_FAILED - the lock on delivery tag 2 has lapsed: the message went back to queue 'q' in vhost '/' after its x-lock-duration", closed(closes))
		time.Sleep(9 * time.Second)
		require.NoError(t, got.Ack(false), "in time")
		time.Sleep(time.Hour)
		_, ok, err = other.Get("q", true)
		require.NoError(t, err)
		assert.False(t, ok)
	})
}

// A connection whose publishes wait for room is not read. Its deliveries still time out
// like others.
func TestTimeoutWhilePublishersAreBlocked(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		other := x.channel(x.connect())
		x.queue(other, "brief", amqp091.Table{"x-consumer-timeout": int32(5000)})
		x.publish(other, "brief", "m")
		synctest.Wait() // the publish is in the queue
		c, err := x.tryConnect(amqp091.Config{Heartbeat: time.Minute})
		require.NoError(t, err)
		in, out := x.channel(c), x.channel(c)
		closes := out.NotifyClose(make(chan *amqp091.Error, 1))
		_, ok, err := out.Get("brief", false)
		require.NoError(t, err)
		require.True(t, ok)
		x.setAlarm(true)
		x.publish(in, "nowhere", "the last that is read")
		time.Sleep(20 * time.Second)
		assert.Equal(t, 1, x.ready("brief"))
		x.setAlarm(false) // over a pipe, the client's close-ok waits to be read
		assert.Equal(t, fmt.Sprintf(timedOut, 2, 5000), closed(closes))
		x.publish(in, "brief", "n")
		assert.Equal(t, 2, x.ready("brief"), "the connection goes on")
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
		_, err = vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "q", Definition: policy.Definition{"lock-duration": int64(30_000)}})
		require.NoError(t, err)
		closes := ch.NotifyClose(make(chan *amqp091.Error, 1))
		time.Sleep(3 * time.Minute)
		assert.Contains(t, closed(closes), "delivery acknowledgement on channel 1 timed out")
	})
}
