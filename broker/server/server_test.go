package server_test

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	amqp10 "github.com/Azure/go-amqp"
	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker/access"
	"curfew/broker/amqp"
	wire "curfew/broker/amqp10"
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
	core, logged := observer.New(zap.InfoLevel)
	run(t, server.Options{MaxConnections: 1, Log: zap.New(core)}, func(x *site) {
		c := x.connect()
		for range 5 {
			_, err := x.tryConnect(amqp091.Config{})
			require.Error(t, err)
		}
		require.NoError(t, c.Close())
		synctest.Wait()
		x.connect()
	})
	require.Equal(t, 1, logged.FilterMessage("connection refused").Len(), "of those in one second")
	require.Zero(t, logged.FilterMessage("connection closed").Len(), "a stop needs no line for each client")
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

// TestLimitsOfBothProtocols: one count, one length, one alarm and one budget hold the clients of AMQP 0-9-1 and 1.0 together.
func TestLimitsOfBothProtocols(t *testing.T) {
	old := func(x *site, user string) error {
		_, err := x.tryConnect(as(user))
		return err
	}
	ten := func(x *site, user string) error {
		c, err := amqp10.NewConn(x.t.Context(), x.l.dial(), &amqp10.ConnOptions{SASLType: amqp10.SASLTypePlain(user, user)})
		if err == nil {
			_, err = c.NewSession(x.t.Context(), nil)
		}
		return err
	}
	refusedBoth := func(x *site, user, why string) {
		t.Helper()
		assert.ErrorContains(t, old(x, user), why)
		assert.ErrorContains(t, ten(x, user), why)
	}
	run(t, server.Options{MaxConnections: 2}, func(x *site) {
		x.user("u", "", "", "")
		require.NoError(t, old(x, "u"))
		require.NoError(t, ten(x, "u"))
		refusedBoth(x, "u", "")
		assert.Equal(t, 2, x.s.Connections())
	})
	run(t, server.Options{}, func(x *site) {
		for _, name := range []string{"u", "v"} {
			x.user(name, "", "", "")
			require.NoError(t, old(x, name))
		}
		require.NoError(t, x.b.Accounts.SetUserLimits("u", access.Limits{access.MaxConnections: 2}))
		require.NoError(t, ten(x, "u"))
		refusedBoth(x, "u", "user connection limit (2) is reached")
		vh, _ := x.b.VHost("/")
		require.NoError(t, vh.SetLimits(access.Limits{access.MaxConnections: 4}))
		require.NoError(t, ten(x, "v"))
		refusedBoth(x, "v", "access to vhost '/' refused for user 'v': connection limit (4) is reached")
	})
	run(t, server.Options{}, func(x *site) {
		require.NoError(t, x.b.Accounts.SetUserLimits("guest", access.Limits{access.MaxChannels: 3}))
		c := x.connect()
		x.channel(c)
		c10, _ := x.connect10(nil)
		x.connect10(nil)
		const why = "number of channels opened for user 'guest' has reached the maximum allowed user limit of (3)"
		_, err := c10.NewSession(x.t.Context(), nil)
		require.ErrorContains(t, err, why) // which ends the connection
		time.Sleep(time.Second)
		x.channel(c)
		_, err = c.Channel()
		assert.ErrorContains(t, err, why)
	})
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("q", amqp091.Table{"x-max-length": int64(2), "x-overflow": "reject-publish"})
		require.NoError(t, ch.Confirm(false))
		publish := func() *amqp091.DeferredConfirmation {
			confirm, err := ch.PublishWithDeferredConfirm("", "q", false, false, amqp091.Publishing{})
			require.NoError(t, err)
			return confirm
		}
		_, s := x.connect10(&amqp10.ConnOptions{WriteTimeout: time.Hour})
		snd := x.sender10(s, "/queues/q")
		send := func() error { return snd.Send(x.t.Context(), amqp10.NewMessage(nil), nil) }
		require.True(t, publish().Wait())
		require.NoError(t, send())
		assert.False(t, publish().Wait())
		assert.ErrorContains(t, send(), "amqp:resource-limit-exceeded")
		_, err := ch.QueuePurge("q", false)
		require.NoError(t, err)

		vh, _ := x.b.VHost("/")
		require.NoError(t, vh.SetLimits(access.Limits{access.MaxQueues: 2}))
		status, _ := x.managed(s, "pair")("PUT", "/queues/r", fields{})
		assert.Equal(t, "201", status)
		status, reason := x.managed(s, "another")("PUT", "/queues/s", fields{})
		assert.Equal(t, []any{"403", "cannot declare queue 's': queue limit in vhost '/' (2) is reached"}, []any{status, reason})
		_, err = x.channel(x.connect()).QueueDeclare("s", true, false, false, false, nil)
		assert.ErrorContains(t, err, "queue limit in vhost '/' (2) is reached")

		x.setAlarm(true)
		confirm, sent := publish(), make(chan error, 1)
		go func() { sent <- send() }()
		time.Sleep(time.Second) // less than a heartbeat, which a pipe does not hold
		assert.Empty(t, sent)
		assert.False(t, confirm.Acked())
		assert.Zero(t, x.ready("q"))
		x.setAlarm(false)
		require.NoError(t, <-sent)
		require.True(t, confirm.Wait())
	})
	part := make([]byte, 120<<10)
	runWith(t, small, server.Options{}, func(x *site) {
		alice := x.login("alice")
		x.queue10("q", nil)
		r := x.raw10()
		for handle := range uint32(2) {
			r.attach(handle, "/queues/q")
			for range 12 {
				r.send(0, &wire.Transfer{Handle: handle, DeliveryID: wire.Uint(handle), More: true}, part...)
			}
		}
		x.others(alice) // evicts the one that uses most
		r.closed("amqp:resource-limit-exceeded")

		c := x.raw()
		c.write(onChannel(2, &amqp.ChannelOpen{}))
		c.expect(amqp.ChannelOpenOkID)
		for id := range uint16(2) {
			c.write(onChannel(id+1, &amqp.BasicPublish{RoutingKey: "k"}))
			c.write(contentHeader(id+1, 2<<20, &amqp.Properties{}))
			for range 12 {
				c.write(contentBody(id+1, part))
			}
		}
		_, s := x.connect10(&amqp10.ConnOptions{SASLType: amqp10.SASLTypePlain("alice", "alice")})
		require.NoError(t, x.sender10(s, "/queues/q").Send(x.t.Context(), amqp10.NewMessage(make([]byte, small.MaxMessageBytes-100)), nil))
		c.expect(amqp.ConnectionCloseID)
		c.Close()
		time.Sleep(time.Second)
	})
}
