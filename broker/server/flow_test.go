package server_test

import (
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/server"
)

// stuck starts a consumer that takes some messages and never acks them: publishers have to
// wait once until that is found out.
func (x *site) stuck(c *amqp091.Connection, queue string) {
	x.t.Helper()
	ch := x.channel(c)
	require.NoError(x.t, ch.Qos(8, 0, false))
	x.consume(ch, queue, false)
}

// crowd publishes more than publishers may without waiting.
func (x *site) crowd(ch *amqp091.Channel, queue string) (messages int) {
	x.t.Helper()
	const size = 256 << 10
	for ; messages < 25<<20/size; messages++ {
		require.NoError(x.t, ch.Publish("", queue, false, false, amqp091.Publishing{Body: make([]byte, size)}))
	}
	return messages
}

// inFlow returns how many connections are listed as in flow.
func (x *site) inFlow() (n int) {
	for _, c := range x.s.List() {
		if c.Flow {
			n++
		}
	}
	assert.Equal(x.t, n, x.s.InFlow())
	return n
}

func TestFlowIsReportedAndEnds(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		publisher := x.connect()
		in, out := x.channel(publisher), x.channel(x.connect())
		x.queue(out, "q", nil)
		x.stuck(x.connect(), "q")
		sent := x.crowd(in, "q")
		assert.Equal(t, 1, x.inFlow())
		q, err := in.QueueDeclarePassive("q", false, false, false, false, nil) // the connection is read again
		require.NoError(t, err)
		assert.Equal(t, sent-8, q.Messages, "the others are unacked, none is lost")
		time.Sleep(2 * time.Second)
		assert.Zero(t, x.inFlow())
		require.NoError(t, publisher.Close())
	})
}

// A connection that consumes never has to wait: its acks must be read.
func TestConnectionThatConsumesIsNotInFlow(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch := x.channel(c)
		x.queue(ch, "q", nil)
		consumers := x.channel(c)
		require.NoError(t, consumers.Qos(1, 0, false))
		deliveries := x.consume(consumers, "q", false)
		before := time.Now()
		sent := x.crowd(ch, "q")
		assert.Zero(t, x.inFlow())
		for range sent {
			require.NoError(t, (<-deliveries).Ack(false))
		}
		assert.Less(t, time.Since(before), 20*time.Millisecond)
		require.NoError(t, consumers.Close())
		x.stuck(x.connect(), "q")
		x.crowd(ch, "q")
		assert.Equal(t, 1, x.inFlow(), "it no longer consumes")
	})
}

func TestCloseAndStopInFlow(t *testing.T) {
	for _, forced := range []bool{true, false} {
		run(t, server.Options{}, func(x *site) {
			in := x.channel(x.connect())
			x.queue(in, "q", nil)
			x.stuck(x.connect(), "q")
			go func() { // over a pipe, a write waits to be read
				for range 150 {
					if in.Publish("", "q", false, false, amqp091.Publishing{Body: make([]byte, 256<<10)}) != nil {
						return
					}
				}
			}()
			synctest.Wait()
			assert.Equal(t, 1, x.inFlow())
			if forced {
				before := time.Now()
				x.s.CloseConnections("test", func(string, string, string) bool { return true })
				synctest.Wait()
				assert.Empty(t, x.s.List())
				assert.Zero(t, time.Since(before))
			}
		})
	}
}

// Messages that each go to many queues are published in turns, in order, and confirmed.
func TestCostlyPublishesTakeTurns(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		vh, _ := x.b.VHost("/")
		const queues, publishers, messages = 1100, 4, 3
		for i := range queues {
			name := "q" + strconv.Itoa(i)
			_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{})
			require.NoError(t, err)
			require.NoError(t, vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
		}
		var publishing sync.WaitGroup
		for range publishers {
			ch := x.channel(x.connect())
			require.NoError(t, ch.Confirm(false))
			publishing.Go(func() {
				for range messages {
					c, err := ch.PublishWithDeferredConfirm("amq.fanout", "", false, false, amqp091.Publishing{})
					if assert.NoError(t, err) {
						assert.True(t, c.Wait())
					}
				}
			})
		}
		publishing.Wait()
		last, err := x.channel(x.connect()).QueueDeclarePassive("q"+strconv.Itoa(queues-1), false, false, false, false, nil)
		require.NoError(t, err)
		assert.Equal(t, publishers*messages, last.Messages)
	})
}
