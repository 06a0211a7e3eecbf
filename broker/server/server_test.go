package server_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/server"
)

func (x *site) consume(ch *amqp091.Channel, queue string, noAck bool) <-chan amqp091.Delivery {
	x.t.Helper()
	deliveries, err := ch.Consume(queue, "", noAck, false, false, false, nil)
	require.NoError(x.t, err)
	return deliveries
}

func TestWhatComesBackKeepsItsPlace(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch, other := x.channel(c), x.channel(c)
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "0", "1", "2", "3")
		require.NoError(t, other.Qos(3, 0, false))
		got := x.settled(x.consume(other, "q", false))
		require.NoError(t, got[1].Nack(false, true))
		require.NoError(t, other.Close())
		d := x.consume(ch, "q", false)
		back := x.settled(d)
		require.Equal(t, []string{"0", "1", "2", "3"}, bodies(back))
		assert.Equal(t, []bool{true, true, true, false}, []bool{back[0].Redelivered, back[1].Redelivered, back[2].Redelivered, back[3].Redelivered})
		//lint:ignore SA1019 deprecated, but still in use
		require.NoError(t, ch.Recover(true))
		assert.Equal(t, []string{"0", "1", "2", "3"}, bodies(x.settled(d)))
	})
}

func TestQueueDeletedUnderItsConsumer(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch, other := x.channel(c), x.channel(c)
		x.queue(ch, "q", nil)
		cancelled := ch.NotifyCancel(make(chan string, 1))
		_, err := ch.Consume("q", "mine", false, false, false, false, nil)
		require.NoError(t, err)
		_, err = other.QueueDelete("q", true, false, false)
		assertException(t, err, 406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use")
		other = x.channel(c)
		_, err = other.QueueDelete("q", false, false, false)
		require.NoError(t, err)
		assert.Equal(t, "mine", <-cancelled)
	})
}

func TestAutoDeleteAndExclusive(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		mine, theirs := x.connect(), x.connect()
		ch := x.channel(mine)
		_, err := ch.QueueDeclare("auto", false, true, false, false, nil)
		require.NoError(t, err)
		_, err = ch.Consume("auto", "c", false, false, false, false, nil)
		require.NoError(t, err)
		require.NoError(t, ch.Cancel("c", false))
		_, err = ch.QueueDeclarePassive("auto", false, true, false, false, nil)
		assertException(t, err, 404, "NOT_FOUND - no queue 'auto' in vhost '/'")

		ch = x.channel(mine)
		named, err := ch.QueueDeclare("", false, false, true, false, nil)
		require.NoError(t, err)
		assert.Regexp(t, "^amq\\.gen-", named.Name)
		_, err = x.channel(theirs).QueueDeclarePassive(named.Name, false, false, true, false, nil)
		assertException(t, err, 405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '"+named.Name+"' in vhost '/'. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.")
		require.NoError(t, mine.Close())
		synctest.Wait()
		_, err = x.channel(theirs).QueueDeclarePassive(named.Name, false, false, true, false, nil)
		assertException(t, err, 404, "NOT_FOUND - no queue '"+named.Name+"' in vhost '/'")
	})
}

func assertException(t *testing.T, err error, code int, text string) {
	t.Helper()
	var e *amqp091.Error
	if assert.ErrorAs(t, err, &e) {
		assert.Equal(t, code, e.Code)
		assert.Equal(t, text, e.Reason)
	}
}

func TestExceptionsCloseTheChannelOrTheConnection(t *testing.T) {
	ack := func(ch *amqp091.Channel) error { return ch.Ack(99, false) }
	twice := func(ch *amqp091.Channel) error {
		ch.QueueDeclare("q", false, false, false, false, nil)
		ch.Consume("q", "tag", false, false, false, false, nil)
		_, err := ch.Consume("q", "tag", false, false, false, false, nil)
		return err
	}
	immediate := func(ch *amqp091.Channel) error {
		return ch.Publish("", "q", false, true, amqp091.Publishing{})
	}
	missing := func(ch *amqp091.Channel) error { return ch.Publish("none", "q", false, false, amqp091.Publishing{}) }
	for _, c := range []struct {
		do         func(*amqp091.Channel) error
		code       int
		text       string
		connection bool
	}{
		{ack, 406, "PRECONDITION_FAILED - unknown delivery tag 99", false},
		{missing, 404, "NOT_FOUND - no exchange 'none' in vhost '/'", false},
		{twice, 530, "NOT_ALLOWED - attempt to reuse consumer tag 'tag'", true},
		{immediate, 540, "NOT_IMPLEMENTED - immediate=true", true},
	} {
		run(t, server.Options{}, func(x *site) {
			conn := x.connect()
			ch := x.channel(conn)
			closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
			c.do(ch)
			e := <-closed
			require.NotNil(t, e)
			assert.Equal(t, c.code, e.Code)
			assert.Equal(t, c.text, e.Reason)
			synctest.Wait()
			assert.Equal(t, c.connection, conn.IsClosed())
			if !c.connection {
				x.queue(x.channel(conn), "next", nil)
			}
		})
	}
}

func TestSilentClientIsCutOff(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		nc := x.l.dial()
		started := time.Now()
		_, err := nc.Read(make([]byte, 1)) // sends nothing
		assert.ErrorIs(t, err, io.EOF)
		assert.Equal(t, 10*time.Second, time.Since(started), "the handshake has ten seconds")
	})
}

func TestHeartbeatsKeepAConnectionAndItsAbsenceEndsIt(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c, err := x.tryConnect(amqp091.Config{Heartbeat: 10 * time.Second})
		require.NoError(t, err)
		ch := x.channel(c)
		time.Sleep(time.Hour)
		x.queue(ch, "still", nil)
		require.False(t, c.IsClosed())
	})
}

func TestConnectionLimit(t *testing.T) {
	run(t, server.Options{MaxConnections: 1}, func(x *site) {
		c := x.connect()
		_, err := x.tryConnect(amqp091.Config{})
		require.Error(t, err)
		require.NoError(t, c.Close())
		synctest.Wait()
		x.connect()
	})
}

// The active consumer, the last of its queue, is cancelled, and its connection ends with
// messages that it still holds.
func TestConnectionGoesAfterTheLastActiveConsumer(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		other := x.channel(x.connect())
		x.queue(other, "q", amqp091.Table{"x-single-active-consumer": true})
		x.publish(other, "q", "0", "1")
		c := x.connect()
		ch := x.channel(c)
		d, err := ch.Consume("q", "tag", false, false, false, false, nil)
		require.NoError(t, err)
		require.Len(t, x.settled(d), 2)
		require.NoError(t, ch.Cancel("tag", false))
		require.NoError(t, c.Close())
		assert.Equal(t, 2, x.ready("q"))
		d, err = other.Consume("q", "", true, false, false, false, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"0", "1"}, bodies(x.settled(d)))
	})
}

// Clients compare the version with RabbitMQ's; Curfew's own version may have any form.
func TestWhatClientsAreTold(t *testing.T) {
	run(t, server.Options{Version: "v0.1.0-17-g6ef57df"}, func(x *site) {
		c := x.connect()
		assert.Equal(t, "4.1.0", c.Properties["version"])
		assert.Equal(t, "v0.1.0-17-g6ef57df", c.Properties["product_version"])
		assert.Equal(t, amqp091.Table{
			"publisher_confirms": true, "exchange_exchange_bindings": true, "basic.nack": true, "consumer_cancel_notify": true, "connection.blocked": true,
			"consumer_priorities": true, "per_consumer_qos": true, "direct_reply_to": true, "authentication_failure_close": true,
		}, c.Properties["capabilities"])
	})
}
