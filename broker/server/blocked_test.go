package server_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server"
)

func TestBlockedPublisherWaitsAndLosesNothing(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		publisher, consumer := x.connect(), x.connect()
		blocked := publisher.NotifyBlocked(make(chan amqp091.Blocking, 4))
		in, out := x.channel(publisher), x.channel(consumer)
		x.queue(out, "q", nil)
		require.NoError(t, in.Confirm(false))
		confirms := in.NotifyPublish(make(chan amqp091.Confirmation, 4))
		x.publish(in, "q", "before")
		require.True(t, (<-confirms).Ack)

		x.setAlarm(true)
		x.publish(in, "q", "first while closed") // over a pipe, it is read
		assert.Equal(t, amqp091.Blocking{Active: true, Reason: "low on memory"}, <-blocked)
		published := make(chan struct{})
		go func() { // over a pipe, a write waits to be read
			defer close(published)
			x.publish(in, "q", "second while closed")
		}()
		synctest.Wait()
		d := x.consume(out, "q", true)
		assert.Equal(t, []string{"before"}, bodies(x.settled(d)), "consumers go on")
		time.Sleep(time.Second) // less than a heartbeat: a pipe, unlike a socket, holds none
		x.setAlarm(false)
		<-published
		assert.Equal(t, amqp091.Blocking{}, <-blocked)
		assert.Equal(t, []string{"first while closed", "second while closed"}, bodies(x.settled(d)))
		assert.True(t, (<-confirms).Ack)
		assert.True(t, (<-confirms).Ack)
	})
}

// What a connection has read before it learns of the alarm waits as well; nothing is lost,
// the order is kept, and so is its transaction.
func TestBlockedFromTheFirstPublishOn(t *testing.T) {
	for _, transactional := range []bool{false, true} {
		run(t, server.Options{}, func(x *site) {
			ch := x.channel(x.connect())
			x.queue(ch, "q", nil)
			c := x.raw()
			defer c.Close()
			if transactional {
				c.send(&amqp.TxSelect{})
				c.expect(amqp.TxSelectOkID)
			}
			ready := func() (n int) {
				q, err := ch.QueueDeclarePassive("q", false, false, false, false, nil)
				require.NoError(t, err)
				return q.Messages
			}
			x.setAlarm(true)
			var batch []byte
			for i := range 100 { // one read
				batch = amqp.AppendMethod(batch, 1, &amqp.BasicPublish{RoutingKey: "q"})
				batch = amqp.AppendContent(batch, 1, []byte{0, 0}, []byte{byte(i)}, 4096)
			}
			if transactional {
				batch = amqp.AppendMethod(batch, 1, &amqp.TxCommit{})
			}
			written := make(chan struct{})
			go func() {
				defer close(written)
				c.write(batch)
			}()
			synctest.Wait()
			vh, _ := x.b.VHost("/")
			before := x.b.Stats().Published
			assert.Zero(t, ready())
			x.setAlarm(false)
			<-written
			if transactional {
				c.expect(amqp.TxCommitOkID)
			}
			synctest.Wait()
			assert.Equal(t, 100, ready())
			assert.EqualValues(t, 100, x.b.Stats().Published-before)
			queue, err := vh.Queues.Get("q")
			require.NoError(t, err)
			for i := range 100 {
				_, err := queue.Messages.Get(true, func(d *broker.Delivery) { assert.EqualValues(t, i, d.Message.Body[0]) })
				require.NoError(t, err)
			}
		})
	}
}

func TestStopWhilePublishersAreBlocked(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.setAlarm(true)
		x.publish(ch, "q", "m")
		synctest.Wait()
	})
}

// The buffer of an unfinished body counts as much as a queued message: while there is no
// memory, the rest of a body is not read.
func TestBlockedInTheMiddleOfABody(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		c := x.raw()
		defer c.Close()
		const frame, frames = 1000, 3
		content := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{RoutingKey: "q"})
		content = amqp.AppendContent(content, 1, []byte{0, 0}, make([]byte, frames*frame), frame+8)
		begun := len(content) - frames*(frame+8) // a header alone begins a publish
		x.setAlarm(true)
		c.write(content[:begun])
		ended := make(chan struct{})
		go func() { // over a pipe, a write waits to be read
			defer close(ended)
			c.write(content[begun:])
		}()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("the rest of the body was read while there was no memory for it")
		default:
		}
		x.setAlarm(false)
		<-ended
		synctest.Wait()
		q, err := ch.QueueDeclarePassive("q", false, false, false, false, nil)
		require.NoError(t, err)
		assert.Equal(t, 1, q.Messages)
	})
}
