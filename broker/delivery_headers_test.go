package broker_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// forged are headers that only the broker may set on a delivery that shows its deadline.
func forged() amqp.Table {
	return amqp.Table{
		"x-expires-at": time.Now().Add(time.Hour).UnixMilli(), "x-enqueued-at": int64(1), "x-locked-until": int64(2), "x-lock-token": "mine",
		"kept": "yes", "x-kept": int32(3),
	}
}

func TestDeliveryShowsWhatIsInForce(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-delivery-deadline": true, "x-lock-duration": int32(1000), "x-message-ttl": int32(5000)})
		start := time.Now().UnixMilli()
		x.publish("", "q", "m", "9000", forged())
		after(300 * time.Millisecond)
		m, ok := x.get(q, false)
		require.True(t, ok)
		first, _ := m.properties.Headers["x-lock-token"].(string)
		assert.Len(t, first, 32)
		delete(m.properties.Headers, "x-lock-token")
		assert.Equal(t, amqp.Table{
			"x-expires-at": start + 5000, "x-enqueued-at": start, "x-locked-until": start + 1300, "kept": "yes", "x-kept": int32(3),
		}, m.properties.Headers)
		assert.Equal(t, "9000", m.properties.Expiration, "as it was published")

		after(time.Second)
		sees := newSink(t, q, false)
		again := sees.take()
		require.Len(t, again, 1)
		assert.True(t, again[0].redelivery)
		headers := again[0].properties.Headers
		assert.Equal(t, start+2300, headers["x-locked-until"], "the new lock")
		assert.NotEqual(t, first, headers["x-lock-token"])
		assert.Equal(t, start, headers["x-enqueued-at"])
		q.Messages.Settle(broker.Requeue, []queue.Seq{again[0].seq}, sees.c)
		sees.c.Cancel()

		found, err := q.Messages.Browse(broker.Browse{Count: 1})
		require.NoError(t, err)
		p, err := found[0].Decode()
		require.NoError(t, err)
		assert.Equal(t, "mine", p.Headers["x-lock-token"], "what is stored is what was published")
	})
}

func TestDeliveryWithoutLockOrDeadlineShowsNone(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-delivery-deadline": true, "x-lock-duration": int32(1000)})
		start := time.Now().UnixMilli()
		x.publish("", "q", "m", "", nil)
		m, _ := x.get(q, true)
		assert.Equal(t, amqp.Table{"x-enqueued-at": start}, m.properties.Headers, "settled as it was taken, so not locked")
		plain := x.queue("plain", amqp.Table{"x-delivery-deadline": false})
		headers := amqp.Table{"x-enqueued-at": int64(1), "x-lock-token": "mine"}
		x.publish("", "plain", "m", "", headers)
		m, _ = x.get(plain, true)
		assert.Equal(t, headers, m.properties.Headers, "whoever does not ask gets what was published")
	})
}

// TestDeadlineHeaderIsNotDeadLettered: a dead letter is the message as it was published.
func TestDeadlineHeaderIsNotDeadLettered(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-delivery-deadline": true, "x-remaining-expiration": true, "x-dead-letter-queue": true})
		x.publish("", "q", "m", "9000", amqp.Table{"a": "b"})
		after(time.Second)
		m, _ := x.get(q, false)
		assert.Equal(t, "8000", m.properties.Expiration)
		q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
		dead, err := x.vh.Queues.Get(deadLetters)
		require.NoError(t, err)
		m, ok := x.get(dead, true)
		require.True(t, ok)
		assert.NotContains(t, m.properties.Headers, "x-enqueued-at")
		entry := m.properties.Headers["x-death"].([]any)[0].(amqp.Table)
		assert.Equal(t, "9000", entry["original-expiration"])
		assert.Equal(t, "b", m.properties.Headers["a"])
	})
}

// TestRemainingExpiration: what is left is rounded up, is never 0, and is not there where the message has no deadline.
func TestRemainingExpiration(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-remaining-expiration": true})
		get := func() amqp.Properties {
			m, ok := x.get(q, true)
			require.True(t, ok)
			return m.properties
		}
		x.publish("", "q", "m", "1000", nil)
		after(999*time.Millisecond + 900*time.Microsecond)
		assert.Equal(t, "1", get().Expiration, "0.1 ms is left")
		x.publish("", "q", "m", "1000", nil)
		after(500 * time.Microsecond)
		assert.Equal(t, "1000", get().Expiration, "never earlier than the deadline")
		x.publish("", "q", "m", "", amqp.Table{"x-expires-at": time.Now().UnixMilli() + 2000})
		assert.Equal(t, "2000", get().Expiration[:4])
		x.publish("", "q", "m", "922337203685477", nil)
		assert.Zero(t, get().Has&amqp.HasExpiration)
		sees := newSink(t, q, true)
		x.publish("", "q", "m", "0", nil)
		m := sees.take()
		require.Len(t, m, 1)
		assert.Equal(t, "1", m[0].properties.Expiration, "0 means no expiration to some brokers")
	})
}

func TestRemainingExpirationByPolicy(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q, not := x.queue("q", nil), x.queue("q2", amqp.Table{"x-remaining-expiration": false})
		left := func(q *broker.Queue) string {
			x.publish("", q.Name, "m", "1000", nil)
			after(10 * time.Millisecond)
			m, ok := x.get(q, true)
			require.True(t, ok)
			return m.properties.Expiration
		}
		x.govern(policy.Definition{"remaining-expiration": true})
		assert.Equal(t, "990", left(q))
		assert.Equal(t, "1000", left(not), "the argument goes before")
		x.govern(policy.Definition{"remaining-expiration": false})
		assert.Equal(t, "1000", left(q))
	})
}

// TestShowingAllocatesLittle: what asks for it needs next to no memory for each message.
func TestShowingAllocatesLittle(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", amqp.Table{"x-delivery-deadline": true, "x-remaining-expiration": true, "x-lock-duration": int32(60_000)})
	p := amqp.Properties{DeliveryMode: 1, Expiration: "100000", Headers: amqp.Table{"trace": "0123456789", "x-lock-token": "mine"}}
	m := broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte("body")}
	var seqs [1]queue.Seq
	one := func() {
		_, err := x.p.Add(&m)
		require.NoError(t, err)
		x.p.Flush(nil)
		_, err = q.Messages.Get(false, func(d *broker.Delivery) { seqs[0] = d.Seq })
		require.NoError(t, err)
		q.Messages.Settle(broker.Ack, seqs[:], nil)
	}
	for range 1000 {
		one()
	}
	least := math.Inf(1) // the race detector has the pool of steps forget some
	for range 100 {
		least = min(least, testing.AllocsPerRun(1, one))
	}
	assert.Less(t, least, 4.0)
}

func TestNeverIsTheLargestSpan(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		for name, never := range map[string]int64{"timespan": 922_337_203_685_477, "int64": math.MaxInt64} {
			q := x.queue(name, amqp.Table{"x-message-ttl": never, "x-expires": never, "x-auto-delete-on-idle": never})
			require.NoError(t, x.vh.Exchanges.Declare(name, broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{"x-message-ttl": never}}))
			require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: name, Destination: name}))
			expiration := map[string]string{"timespan": "922337203685477", "int64": "9223372036854775807"}[name]
			x.publish(name, "", "m", expiration, nil)
			x.publish("", name, "n", "", amqp.Table{"x-expires-at": never})
			assert.Empty(t, x.deadlines())
			m, _ := x.get(q, false)
			assert.Equal(t, expiration, m.properties.Expiration)
			q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
			x.govern(policy.Definition{"message-ttl": never, "expires": never})
		}
		finite := x.queue("q", amqp.Table{"x-message-ttl": int32(1000)})
		x.govern(policy.Definition{"message-ttl": int64(math.MaxInt64), "expires": int64(math.MaxInt64)})
		x.publish("", "q", "m", "922337203685477", nil)
		assert.Len(t, x.deadlines(), 1, "the queue's holds for a message that says never")
		after(24 * time.Hour)
		assert.Empty(t, x.drain(finite))
		assert.Equal(t, []string{"m", "n"}, x.drain(x.queue("int64", amqp.Table{
			"x-message-ttl": int64(math.MaxInt64), "x-expires": int64(math.MaxInt64), "x-auto-delete-on-idle": int64(math.MaxInt64),
		})))
		synctest.Wait()
	})
}

func TestOtherLargeSpansAreRefused(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for _, arg := range []string{"x-message-ttl", "x-expires", "x-auto-delete-on-idle", "x-lock-duration"} {
		for _, large := range []int64{315_360_000_001, 922_337_203_685_476, 922_337_203_685_478, math.MaxInt64 - 1} {
			_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{arg: large}})
			assert.Contains(t, text(err), "{value_too_large,", "%s %d", arg, large)
		}
	}
	for _, never := range []int64{922_337_203_685_477, math.MaxInt64} {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-lock-duration": never}})
		assert.Contains(t, text(err), "{value_too_large,", "Service Bus has no lock without an end")
	}
}

// TestInstantHeadersOutliveARestart: also of a message that was moved in as a dead letter.
func TestInstantHeadersOutliveARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}, Clock: wallClock}
	x := openTestBroker(t, o)
	x.durable("q", amqp.Table{"x-delivery-deadline": true})
	from := x.durable("from", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"})
	began := time.Now().UnixMilli()
	x.publishPersistent("", "q", "published", "3600000")
	x.publishPersistent("", "from", "dead", "")
	m, _ := x.get(from, false)
	from.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	x.commit()
	ended := time.Now().UnixMilli() + 1
	x = restarted(t, o, x.b)
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	for _, body := range []string{"published", "dead"} {
		m, ok := x.get(q, true)
		require.True(t, ok)
		assert.Equal(t, body, m.body)
		at, _ := m.properties.Headers["x-enqueued-at"].(int64)
		assert.LessOrEqual(t, began, at)
		assert.GreaterOrEqual(t, ended, at)
		if body == "published" {
			assert.Equal(t, at+3_600_000, m.properties.Headers["x-expires-at"])
		}
	}
	require.NoError(t, x.b.Close())
}
