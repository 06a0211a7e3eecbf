package server_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

		x.closeGate(true)
		x.publish(in, "q", "first while closed") // read before the gate is asked
		assert.Equal(t, amqp091.Blocking{Active: true, Reason: "low on memory"}, <-blocked)
		published := make(chan struct{})
		go func() { // over a pipe, a write waits to be read
			defer close(published)
			x.publish(in, "q", "second while closed")
		}()
		synctest.Wait()
		d := x.consume(out, "q", true)
		assert.Equal(t, []string{"before", "first while closed"}, bodies(x.settled(d)), "consumers go on")
		time.Sleep(time.Second) // less than a heartbeat: a pipe, unlike a socket, holds none
		x.closeGate(false)
		<-published
		assert.Equal(t, amqp091.Blocking{}, <-blocked)
		assert.Equal(t, []string{"second while closed"}, bodies(x.settled(d)))
		assert.True(t, (<-confirms).Ack)
		assert.True(t, (<-confirms).Ack)
	})
}

func TestStopWhilePublishersAreBlocked(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.closeGate(true)
		x.publish(ch, "q", "m")
		synctest.Wait()
	})
}
