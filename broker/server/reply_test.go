package server_test

import (
	"testing"
	"testing/synctest"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/server"
)

const replyTo = "amq.rabbitmq.reply-to"

// request sends a request with direct reply-to and returns the address that the other side
// finds in it.
func (x *site) request(ch *amqp091.Channel) string {
	x.t.Helper()
	x.queue(ch, "requests", nil)
	require.NoError(x.t, ch.Publish("", "requests", false, false, amqp091.Publishing{
		ReplyTo: replyTo, CorrelationId: "7", ContentType: "text/plain", Headers: amqp091.Table{"a": "b"}, DeliveryMode: 2, MessageId: "m",
	}))
	d, ok, err := ch.Get("requests", true)
	require.NoError(x.t, err)
	require.True(x.t, ok)
	assert.Equal(x.t, "7", d.CorrelationId)
	assert.Equal(x.t, "m", d.MessageId)
	assert.Equal(x.t, amqp091.Table{"a": "b"}, d.Headers)
	return d.ReplyTo
}

func TestDirectReply(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		asks, answers := x.channel(x.connect()), x.channel(x.connect())
		replies := x.consume(asks, replyTo, true)
		to := x.request(asks)
		require.Contains(t, to, replyTo+".")

		q, err := answers.QueueDeclarePassive(to, false, false, false, false, nil)
		require.NoError(t, err)
		assert.Equal(t, amqp091.Queue{Name: to, Consumers: 1}, q)
		require.NoError(t, answers.Publish("", to, false, false, amqp091.Publishing{CorrelationId: "7", Body: []byte("answer")}))
		got := x.settled(replies)
		require.Len(t, got, 1)
		assert.Equal(t, "answer", string(got[0].Body))
		assert.Equal(t, "7", got[0].CorrelationId)
		assert.Equal(t, to, got[0].RoutingKey)

		require.NoError(t, asks.Cancel(got[0].ConsumerTag, false))
		require.NoError(t, answers.Publish("", to, false, false, amqp091.Publishing{}))
		assert.Empty(t, x.settled(replies))
		_, err = answers.QueueDeclarePassive(to, false, false, false, false, nil)
		assert.ErrorContains(t, err, "NOT_FOUND - no queue '"+to+"' in vhost '/'")
		x.consume(asks, replyTo, true)
	})
}

func TestRepliesEndWithTheirChannel(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		asks, answers := x.channel(c), x.channel(c)
		replies := x.consume(asks, replyTo, true)
		to := x.request(asks)
		require.NoError(t, asks.Close())
		require.NoError(t, answers.Confirm(false))
		confirms := answers.NotifyPublish(make(chan amqp091.Confirmation, 1))
		returns := answers.NotifyReturn(make(chan amqp091.Return, 1))
		require.NoError(t, answers.Publish("", to, true, false, amqp091.Publishing{}))
		assert.True(t, (<-confirms).Ack)
		assert.Equal(t, "NO_ROUTE", (<-returns).ReplyText)
		synctest.Wait()
		_, open := <-replies
		assert.False(t, open)
	})
}

func TestReplyConsumersThatAreRefused(t *testing.T) {
	for text, do := range map[string]func(*site, *amqp091.Channel) error{
		"PRECONDITION_FAILED - reply consumer cannot acknowledge": func(_ *site, ch *amqp091.Channel) error {
			_, err := ch.Consume(replyTo, "", false, false, false, false, nil)
			return err
		},
		"PRECONDITION_FAILED - reply consumer already set": func(x *site, ch *amqp091.Channel) error {
			x.consume(ch, replyTo, true)
			_, err := ch.Consume(replyTo, "", true, false, false, false, nil)
			return err
		},
		"PRECONDITION_FAILED - fast reply consumer does not exist": func(_ *site, ch *amqp091.Channel) error {
			closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
			require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{ReplyTo: replyTo}))
			return <-closed
		},
		"NOT_ALLOWED - attempt to reuse consumer tag 'tag'": func(x *site, ch *amqp091.Channel) error {
			x.queue(ch, "q", nil)
			_, err := ch.Consume("q", "tag", true, false, false, false, nil)
			require.NoError(t, err)
			_, err = ch.Consume(replyTo, "tag", true, false, false, false, nil)
			return err
		},
	} {
		run(t, server.Options{}, func(x *site) {
			assert.ErrorContains(t, do(x, x.channel(x.connect())), text)
		})
	}
}
