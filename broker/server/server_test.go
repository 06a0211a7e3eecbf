package server_test

import (
	"bytes"
	"fmt"
	"io"
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

func (x *site) consume(ch *amqp091.Channel, queue string, noAck bool) <-chan amqp091.Delivery {
	x.t.Helper()
	deliveries, err := ch.Consume(queue, "", noAck, false, false, false, nil)
	require.NoError(x.t, err)
	return deliveries
}

func TestPrefetchOfAConsumer(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "0", "1", "2", "3", "4")
		require.NoError(t, ch.Qos(2, 0, false))
		d := x.consume(ch, "q", false)
		got := x.settled(d)
		require.Equal(t, []string{"0", "1"}, bodies(got))
		require.NoError(t, got[0].Ack(false))
		more := x.settled(d)
		require.Equal(t, []string{"2"}, bodies(more), "one settled, one more")
		require.NoError(t, more[0].Ack(true))
		assert.Equal(t, []string{"3", "4"}, bodies(x.settled(d)))
	})
}

func TestPrefetchOfAChannelIsShared(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "a", nil)
		x.queue(ch, "b", nil)
		x.publish(ch, "a", "a0", "a1")
		x.publish(ch, "b", "b0", "b1")
		require.NoError(t, ch.Qos(3, 0, true))
		a, b := x.consume(ch, "a", false), x.consume(ch, "b", false)
		fromA, fromB := x.settled(a), x.settled(b)
		require.Equal(t, []string{"a0", "a1"}, bodies(fromA))
		require.Equal(t, []string{"b0"}, bodies(fromB))
		require.NoError(t, fromA[0].Ack(false))
		assert.Equal(t, []string{"b1"}, bodies(x.settled(b)), "a's ack makes room for b's message")
		require.NoError(t, ch.Qos(0, 0, true))
		x.publish(ch, "b", "b2")
		assert.Equal(t, []string{"b2"}, bodies(x.settled(b)))
	})
}

// The consumer that acks has another message at once, and still the others have their turns.
func TestPrefetchOfAChannelTakesTurns(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		require.NoError(t, ch.Qos(2, 0, true))
		var all []<-chan amqp091.Delivery
		for _, name := range []string{"a", "b", "c"} {
			x.queue(ch, name, nil)
			x.publish(ch, name, name+"0", name+"1", name+"2", name+"3")
			all = append(all, x.consume(ch, name, false))
		}
		var order []string
		for len(order) < 12 {
			var next []amqp091.Delivery
			for _, d := range all {
				next = append(next, x.settled(d)...)
			}
			require.NotEmpty(t, next, "somebody is served")
			for _, d := range next {
				order = append(order, string(d.Body))
				require.NoError(t, d.Ack(false))
			}
		}
		assert.Equal(t, []string{"a0", "a1", "a2", "b0", "a3", "c0", "b1", "c1", "b2", "c2", "b3", "c3"}, order)
	})
}

func TestPrefetchOfAChannelAndConsumersWithoutAcks(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		require.NoError(t, ch.Qos(1, 0, true))
		x.queue(ch, "q", nil)
		x.queue(ch, "free", nil)
		d, free := x.consume(ch, "q", false), x.consume(ch, "free", true)
		x.publish(ch, "free", "0", "1")
		assert.Equal(t, []string{"0", "1"}, bodies(x.settled(free)), "they do not count")
		x.publish(ch, "q", "held")
		held := x.settled(d)
		require.Len(t, held, 1)
		x.publish(ch, "free", "2", "3")
		require.Empty(t, x.settled(free), "they wait for the limit")
		require.NoError(t, held[0].Ack(false))
		assert.Equal(t, []string{"2", "3"}, bodies(x.settled(free)))
		x.publish(ch, "q", "another", "waits")
		require.Len(t, x.settled(d), 1)
		require.NoError(t, ch.Qos(0, 0, false))
		assert.Equal(t, []string{"waits"}, bodies(x.settled(d)), "a prefetch of consumers ends that of the channel")
	})
}

// Who waits and is cancelled is in nobody's way.
func TestPrefetchOfAChannelAndCancel(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		require.NoError(t, ch.Qos(1, 0, true))
		var all []<-chan amqp091.Delivery
		for _, name := range []string{"a", "b", "c"} {
			x.queue(ch, name, nil)
			x.publish(ch, name, name+"0", name+"1")
			d, err := ch.Consume(name, name, false, false, false, false, nil)
			require.NoError(t, err)
			all = append(all, d)
		}
		held := x.settled(all[0])
		require.Len(t, held, 1)
		require.NoError(t, ch.Cancel("b", false))
		other := x.channel(x.connect())
		_, err := other.QueueDelete("a", false, false, false)
		require.NoError(t, err)
		require.NoError(t, held[0].Ack(false))
		assert.Equal(t, []string{"c0"}, bodies(x.settled(all[2])))
	})
}

func TestWhatGetTookDoesNotCountAgainstPrefetch(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "0", "1")
		require.NoError(t, ch.Qos(1, 0, true))
		_, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, []string{"1"}, bodies(x.settled(x.consume(ch, "q", false))))
	})
}

func TestConsumersTakeTurns(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		a, b := x.consume(ch, "q", true), x.consume(ch, "q", true)
		x.publish(ch, "q", "0", "1", "2", "3")
		assert.Equal(t, []string{"0", "2"}, bodies(x.settled(a)))
		assert.Equal(t, []string{"1", "3"}, bodies(x.settled(b)))
	})
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
		//lint:ignore SA1019 deprecated, and still spoken
		require.NoError(t, ch.Recover(true))
		assert.Equal(t, []string{"0", "1", "2", "3"}, bodies(x.settled(d)))
	})
}

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

func TestLogin(t *testing.T) {
	runWith(t, broker.Options{User: "app", Password: "secret"}, server.Options{}, func(x *site) {
		_, err := x.tryConnect(amqp091.Config{SASL: []amqp091.Authentication{&amqp091.PlainAuth{Username: "app", Password: "wrong"}}})
		assertException(t, err, 403, "username or password not allowed") // the client's own words for the 403
		_, err = x.tryConnect(amqp091.Config{
			SASL:  []amqp091.Authentication{&amqp091.AMQPlainAuth{Username: "app", Password: "secret"}},
			Vhost: "other",
		})
		assertException(t, err, 530, "NOT_ALLOWED - vhost other not found")
		c, err := x.tryConnect(amqp091.Config{SASL: []amqp091.Authentication{&amqp091.AMQPlainAuth{Username: "app", Password: "secret"}}})
		require.NoError(t, err)
		require.NoError(t, c.Close())
	})
}

func TestSilentClientIsCutOff(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		nc := x.l.dial()
		started := time.Now()
		_, err := nc.Read(make([]byte, 1)) // says nothing itself
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

func TestSlowConsumerIsBounded(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch := x.channel(c)
		x.queue(ch, "q", nil)
		body := bytes.Repeat([]byte("x"), 64<<10)
		for range 100 {
			require.NoError(t, ch.Publish("", "q", false, false, amqp091.Publishing{Body: body}))
		}
		slow := x.raw()
		slow.send(&amqp.BasicConsume{Queue: "q", NoAck: true})
		slow.expect(amqp.BasicConsumeOkID)
		synctest.Wait() // it reads nothing, so nothing moves
		q, err := ch.QueueDeclarePassive("q", false, false, false, false, nil)
		require.NoError(t, err)
		assert.Greater(t, q.Messages, 50, "the broker does not buffer for a client that does not read")
		for range 100 {
			slow.expect(amqp.BasicDeliverID)
		}
		require.NoError(t, slow.Close())
	})
}

// The active consumer is cancelled, the last of its queue, and its connection goes with
// what it still holds.
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

// Clients compare the version with RabbitMQ's; Curfew's own may be of any form.
func TestWhatClientsAreTold(t *testing.T) {
	told := func(o server.Options) (version, own any, capabilities amqp091.Table) {
		run(t, o, func(x *site) {
			c := x.connect()
			capabilities, _ = c.Properties["capabilities"].(amqp091.Table)
			version, own = c.Properties["version"], c.Properties["product_version"]
		})
		return version, own, capabilities
	}
	version, own, capabilities := told(server.Options{Version: "v0.1.0-17-g6ef57df"})
	assert.Equal(t, "4.1.0", version)
	assert.Equal(t, "v0.1.0-17-g6ef57df", own)
	assert.Equal(t, amqp091.Table{
		"publisher_confirms": true, "exchange_exchange_bindings": true, "basic.nack": true, "consumer_cancel_notify": true, "connection.blocked": true,
		"consumer_priorities": true, "per_consumer_qos": true, "direct_reply_to": true, "authentication_failure_close": true,
	}, capabilities)
	version, _, _ = told(server.Options{Compat: "3.13.7"})
	assert.Equal(t, "3.13.7", version)
}
