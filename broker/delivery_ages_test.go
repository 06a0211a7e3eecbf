package broker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// TestAgeOfTheOldestMessage: by when it entered this queue, whatever its publisher's timestamp says, over all priorities, ready or unacked.
func TestAgeOfTheOldestMessage(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-max-priority": 3})
		age := func() time.Duration { return q.Info().OldestAge.Round(time.Second) }
		publish := func(priority uint8) {
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{
				Has: amqp.HasTimestamp | amqp.HasPriority, Timestamp: 1, Priority: priority,
			}).Append(nil)})
			require.NoError(t, err)
			x.p.Flush(nil)
		}
		assert.Zero(t, age())
		publish(0)
		time.Sleep(time.Minute)
		publish(2)
		time.Sleep(time.Minute)
		publish(2)
		assert.Equal(t, 2*time.Minute, age(), "the low one waits behind the others")
		first, _ := x.get(q, false)
		time.Sleep(time.Minute)
		assert.Equal(t, 3*time.Minute, age())
		for range 2 {
			x.get(q, true)
		}
		assert.Equal(t, 2*time.Minute, age(), "only the unacked one is left")
		q.Messages.Settle(broker.Ack, []queue.Seq{first.seq}, nil)
		assert.Zero(t, age())
		publish(0)
		time.Sleep(time.Second)
		assert.Equal(t, time.Second, age(), "those that have left do not count")
	})
}

// TestAgeIsNeverTooLow: it is exact for a queue with few messages a second, and within a part in 256 however long the queue has grown.
func TestAgeIsNeverTooLow(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		began, taken := time.Now(), 0
		for i := range 3000 { // a message every 10 s; from the middle on two leave for each that comes
			x.publish("", "q", "m", "", nil)
			time.Sleep(10 * time.Second)
			if i > 1600 && taken < i {
				x.get(q, true)
				x.get(q, true)
				taken += 2
			}
			if i%50 != 0 {
				continue
			}
			want := time.Since(began.Add(time.Duration(taken) * 10 * time.Second))
			got := q.Info().OldestAge
			require.GreaterOrEqual(t, got, want-time.Millisecond)
			require.LessOrEqual(t, got, want+time.Since(began)/128+10*time.Millisecond, "message %d", i)
		}
	})
}

// TestAgeAfterABacklog: once a long backlog has left, ages are as exact as if there had been none.
func TestAgeAfterABacklog(t *testing.T) {
	for name, left := range map[string]int{"all of it": 0, "most of it": 60} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, broker.Options{}, func(x *testBroker) {
				q := x.queue("q", nil)
				next := func() {
					time.Sleep(10 * time.Second)
					x.publish("", "q", "m", "", nil)
				}
				for range 3000 {
					next()
				}
				for range 3000 - left {
					x.get(q, true)
				}
				for range left + 1 {
					next()
					if left > 0 {
						x.get(q, true)
					}
				}
				for range 50 {
					next()
					x.get(q, true)
					want := time.Duration(max(left, 1)-1) * 10 * time.Second
					got := q.Info().OldestAge
					require.GreaterOrEqual(t, got, want-time.Millisecond)
					require.LessOrEqual(t, got, want+want/128+10*time.Millisecond)
				}
			})
		})
	}
}

// TestAgeOfAShortLife: where messages come one after the other and live for 6 s, the oldest is hardly said to be older.
func TestAgeOfAShortLife(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", nil)
		for i := range 3000 {
			x.publish("", "q", "m", "", nil)
			if time.Sleep(7 * time.Millisecond); i*7 < 6000 {
				continue
			}
			x.get(q, true)
			require.InDelta(t, 6.0, q.Info().OldestAge.Seconds(), 0.06, "message %d", i)
		}
	})
}

// TestAgeAfterARestart: it goes on, since the journal has the times of the marks. What follows a message that has left is as old as the next at least.
func TestAgeAfterARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	rewritten := x.durable("rewritten", nil)
	x.publishPersistent("", "q", "m", "")
	x.publishPersistent("", "rewritten", "m", "")
	published := time.Now()
	m, _ := x.get(rewritten, false)
	require.NoError(t, rewritten.Messages.Rewrite(m.seq, func([]byte, []byte) []byte { return []byte{0, 0} }))
	x = restarted(t, o, x.b)
	for _, name := range []string{"q", "rewritten"} {
		q, err := x.vh.Queues.Get(name)
		require.NoError(t, err)
		since := time.Since(published)
		assert.GreaterOrEqual(t, q.Info().OldestAge, since, name)
		assert.Less(t, q.Info().OldestAge, since+time.Minute, name)
	}
	require.NoError(t, x.b.Close())
}
