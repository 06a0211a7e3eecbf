package server_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/server"
)

func TestConfirms(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "small", amqp091.Table{"x-max-length": 2, "x-overflow": "reject-publish"})
		require.NoError(t, ch.Confirm(false))
		confirms := ch.NotifyPublish(make(chan amqp091.Confirmation, 10))
		x.publish(ch, "small", "0", "1", "2")
		x.publish(ch, "nowhere", "3")
		synctest.Wait()
		for i := range 4 {
			c := <-confirms
			assert.EqualValues(t, i+1, c.DeliveryTag)
			assert.Equal(t, i != 2, c.Ack, "the full queue's publish is nacked, an unroutable one acked")
		}
	})
}

func TestReturnComesBeforeItsConfirm(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		require.NoError(t, ch.Confirm(false))
		order := make(chan string, 2)
		returns, confirms := ch.NotifyReturn(make(chan amqp091.Return)), ch.NotifyPublish(make(chan amqp091.Confirmation))
		go func() {
			r := <-returns
			order <- fmt.Sprint(r.ReplyCode, " ", r.ReplyText, " ", r.Headers["x-dotnet-pub-seq-no"], " ", string(r.Body))
			<-confirms
			order <- "ack"
		}()
		require.NoError(t, ch.Publish("", "nowhere", true, false, amqp091.Publishing{
			Headers: amqp091.Table{"x-dotnet-pub-seq-no": "1"}, Body: []byte("m"),
		}))
		assert.Equal(t, "312 NO_ROUTE 1 m", <-order)
		assert.Equal(t, "ack", <-order)
	})
}

func TestBodyOfManyFrames(t *testing.T) {
	run(t, server.Options{FrameMax: 4096}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		body := bytes.Repeat([]byte("0123456789"), 100_000)
		require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Body: body, ContentType: "text/plain"}))
		d, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		require.True(t, ok)
		assert.True(t, bytes.Equal(body, d.Body))
		assert.Equal(t, "text/plain", d.ContentType)
		_, ok, err = ch.Get("q", true)
		require.NoError(t, err)
		assert.False(t, ok)
	})
}
