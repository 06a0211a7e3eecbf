package server_test

import (
	"bytes"
	"io"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/server"
)

// TestBothSidesCloseAChannel: the client's channel.close crosses the server's. Each is
// answered, and the close-ok that comes last does not meet a forgotten channel (504 on the
// whole connection).
func TestBothSidesCloseAChannel(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.raw()
		defer c.Close()
		crossing := amqp.AppendMethod(nil, 1, &amqp.QueueDeclare{Queue: "none", Passive: true})
		crossing = amqp.AppendMethod(crossing, 1, &amqp.ChannelClose{})
		c.write(crossing)
		c.expect(amqp.ChannelCloseID)
		c.expect(amqp.ChannelCloseOkID)
		c.send(&amqp.ChannelCloseOk{})
		c.send(&amqp.ChannelOpen{})
		c.expect(amqp.ChannelOpenOkID)
	})
}

// TestClientHangsUpFirst: after close-ok the socket stays open until the client closes it,
// or takes too long. Some clients, such as amqp091-go, may take the end of the stream for
// an error if it comes before they have handled close-ok.
func TestClientHangsUpFirst(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.raw()
		defer c.Close()
		c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionClose{}))
		c.expect(amqp.ConnectionCloseOkID)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Second)))
		_, err := c.r.ReadByte()
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
		_, err = c.r.ReadByte()
		require.ErrorIs(t, err, io.EOF)
	})
}

// TestStopDeliversNothing: what the first closed connections requeue stays in the queue,
// and is not delivered to connections that are closed next.
func TestStopDeliversNothing(t *testing.T) {
	held, delivered := 0, make(map[string]int)
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		var all []<-chan amqp091.Delivery
		for range 5 {
			ch := x.channel(x.connect())
			all = append(all, x.consume(ch, "q", false))
		}
		x.publish(ch, "q", "0", "1", "2", "3", "4")
		for _, d := range all {
			held += len(x.settled(d))
			go func() {
				for m := range d {
					delivered[string(m.Body)]++
				}
			}()
		}
	})
	require.Equal(t, 5, held)
	require.Empty(t, delivered)
}

// lastWords returns the octets with these words together with the end of the stream, as TLS
// does when the client closes right after writing.
type lastWords struct {
	net.Conn
	words []byte
}

func (c lastWords) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && bytes.Contains(b[:n], c.words) {
		c.Close()
		return n, io.EOF
	}
	return n, err
}

func TestWhatComesWithTheEndIsRead(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		c, err := amqp091.DialConfig("amqp://guest:guest@pipe/", amqp091.Config{Dial: func(string, string) (net.Conn, error) {
			client, srv := net.Pipe()
			x.l.conns <- lastWords{srv, []byte("farewell")}
			return client, nil
		}})
		require.NoError(t, err)
		x.publish(x.channel(c), "q", "farewell")
		time.Sleep(time.Second)
		q, err := ch.QueueDeclarePassive("q", false, false, false, false, nil)
		require.NoError(t, err)
		require.Equal(t, 1, q.Messages)
	})
}

// Each connection.close is answered, and the client closes the socket first, if it does so
// in time.
func TestClosingSeveralTimes(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.raw()
		for range 3 {
			c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionClose{}))
			c.expect(amqp.ConnectionCloseOkID)
		}
		synctest.Wait()
		assert.Equal(t, 1, x.s.Connections())
		require.NoError(t, c.Close())
		synctest.Wait()
		assert.Zero(t, x.s.Connections())

		c = x.raw()
		c.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionClose{}))
		c.expect(amqp.ConnectionCloseOkID)
		began := time.Now()
		_, err := c.r.ReadByte()
		assert.ErrorIs(t, err, io.EOF)
		assert.Equal(t, 5*time.Second, time.Since(began))
	})
}

func TestForcedCloseNeedsNoAnswer(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		deaf := x.raw()
		deaf.send(&amqp.QueueDeclare{Queue: "q", Exclusive: true})
		deaf.expect(amqp.QueueDeclareOkID)
		require.NoError(t, x.b.Accounts.DeleteUser("guest"))
		deaf.expect(amqp.ConnectionCloseID)
		synctest.Wait()
		vh, _ := x.b.VHost("/")
		_, err := vh.Queues.Get("q")
		assert.Error(t, err, "what it held is given back at once")
		_, err = io.Copy(io.Discard, deaf.r)
		assert.NoError(t, err, "it is cut off")
	})
}

func TestForcedCloseOfAPublisherHeldBack(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.user("u", ".*", ".*", ".*")
		c, err := x.tryConnect(as("u"))
		require.NoError(t, err)
		closed := c.NotifyClose(make(chan *amqp091.Error, 1))
		ch := x.channel(c)
		x.setAlarm(true)
		x.publish(ch, "q", "held back")
		synctest.Wait()
		require.NoError(t, x.b.Accounts.DeleteUser("u"))
		assertException(t, <-closed, 320, "CONNECTION_FORCED - user 'u' is deleted")
		x.setAlarm(false)
	})
}

// clientErrors is how often clients were told each reason for an end.
func (x *site) clientErrors() map[string]int64 {
	of := map[string]int64{}
	for e, r := range x.s.Errors.All() {
		require.Contains(x.t, e.Client, "(user guest, ")
		of[e.Text] = r.Count
	}
	return of
}

// TestClientErrors: what closes a client's channels again and again is counted, by client and reason. That somebody closes its connection is not.
func TestClientErrors(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		conn := x.connect()
		for range 6 {
			_, err := x.channel(conn).QueueDeclarePassive("none", false, false, false, false, nil)
			require.Error(t, err)
			time.Sleep(time.Second)
		}
		other := x.connect()
		require.Error(t, x.channel(other).ExchangeDeclarePassive("none", "direct", false, false, false, false, nil))
		closed := other.NotifyClose(make(chan *amqp091.Error, 1))
		require.Equal(t, 2, x.s.CloseConnections("by an operator", func(string, string, string) bool { return true }))
		<-closed

		of := map[string]int64{}
		for e, r := range x.s.Errors.All() {
			require.Equal(t, "/", e.VHost)
			require.Contains(t, e.Client, "(user guest, ")
			require.EqualValues(t, amqp.NotFound, e.Code)
			of[e.Text] = r.Count
			require.Equal(t, r.Count == 6, r.GoesOn(time.Now(), 5*time.Second))
		}
		require.Equal(t, map[string]int64{"NOT_FOUND - no queue 'none' in vhost '/'": 6, "NOT_FOUND - no exchange 'none' in vhost '/'": 1}, of)
	})
}
