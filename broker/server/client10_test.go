package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	amqp10 "github.com/Azure/go-amqp"
	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	wire "curfew/broker/amqp10"
	"curfew/broker/server"
	"curfew/integration/testenv"
)

// connect10 opens a session with the real client library of AMQP 1.0.
func (x *site) connect10(o *amqp10.ConnOptions) (*amqp10.Conn, *amqp10.Session) {
	x.t.Helper()
	if o == nil {
		o = &amqp10.ConnOptions{}
	}
	if o.SASLType == nil {
		o.SASLType = amqp10.SASLTypePlain("guest", "guest")
	}
	c, err := amqp10.NewConn(x.t.Context(), x.l.dial(), o)
	require.NoError(x.t, err)
	s, err := c.NewSession(x.t.Context(), nil)
	require.NoError(x.t, err)
	return c, s
}

// close10 closes a connection. The library takes the end of a pipe, whichever side ends it first, for an error.
func (x *site) close10(c *amqp10.Conn) {
	x.t.Helper()
	if err := c.Close(); err != nil {
		require.Contains(x.t, []string{io.EOF.Error(), io.ErrClosedPipe.Error()}, err.Error())
	}
	time.Sleep(time.Second)
}

func (x *site) queue10(name string, args amqp091.Table) *amqp091.Channel {
	x.t.Helper()
	ch := x.channel(x.connect())
	_, err := ch.QueueDeclare(name, true, false, false, false, args)
	require.NoError(x.t, err)
	return ch
}

func (x *site) sender10(s *amqp10.Session, target string) *amqp10.Sender {
	x.t.Helper()
	snd, err := s.NewSender(x.t.Context(), target, nil)
	require.NoError(x.t, err)
	return snd
}

func (x *site) receiver10(s *amqp10.Session, source string, o *amqp10.ReceiverOptions) *amqp10.Receiver {
	x.t.Helper()
	rcv, err := s.NewReceiver(x.t.Context(), source, o)
	require.NoError(x.t, err)
	return rcv
}

func (x *site) receive10(r *amqp10.Receiver) *amqp10.Message {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Minute)
	defer cancel()
	m, err := r.Receive(ctx, nil)
	require.NoError(x.t, err)
	return m
}

func (x *site) noMore10(r *amqp10.Receiver) {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), time.Second)
	defer cancel()
	_, err := r.Receive(ctx, nil)
	assert.ErrorIs(x.t, err, context.DeadlineExceeded)
}

// TestScheduled10: what was scheduled over AMQP 1.0 is changed over it, by message annotations. The reply-to of a command is a queue's name.
func TestScheduled10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("q", nil)
		_, err := ch.QueueDeclare("answers", true, false, false, false, nil)
		require.NoError(t, err)
		c, s := x.connect10(nil)
		snd := x.sender10(s, "/queues/q")
		send := func(body string, p amqp10.MessageProperties, a amqp10.Annotations) {
			require.NoError(t, snd.Send(x.t.Context(), &amqp10.Message{Properties: &p, Annotations: a, Data: [][]byte{[]byte(body)}}, nil))
		}
		for _, id := range []string{"a", "b"} {
			send(id, amqp10.MessageProperties{MessageID: id}, amqp10.Annotations{"x-delay": int32(60_000)})
		}
		send("", amqp10.MessageProperties{ReplyTo: new("answers"), CorrelationID: "1"}, amqp10.Annotations{"x-cancel": "a"})
		m := x.receive10(x.receiver10(s, "/queues/answers", nil))
		assert.Equal(t, "cancelled", string(m.GetData()))
		assert.EqualValues(t, "1", m.Properties.CorrelationID)
		time.Sleep(time.Minute)
		rcv := x.receiver10(s, "/queues/q", nil)
		assert.Equal(t, "b", string(x.receive10(rcv).GetData()))
		x.noMore10(rcv)
		x.close10(c)
	})
}

// TestBothProtocols: what is published over one protocol can be consumed over both, in frames that are
// smaller than the message, too.
func TestBothProtocols(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("q", nil)
		c, s := x.connect10(&amqp10.ConnOptions{MaxFrameSize: 512})
		snd, rcv := x.sender10(s, "/queues/q"), x.receiver10(s, "/queues/q", nil)
		long := bytes.Repeat([]byte("long "), 10_000)
		id := "id"
		require.NoError(t, snd.Send(x.t.Context(), &amqp10.Message{
			Header: &amqp10.MessageHeader{Durable: true, Priority: 4}, Properties: &amqp10.MessageProperties{MessageID: id},
			ApplicationProperties: map[string]any{"n": int64(7)}, Data: [][]byte{long},
		}, nil))
		m := x.receive10(rcv)
		assert.Equal(t, long, m.GetData())
		assert.Equal(t, int64(7), m.ApplicationProperties["n"])
		assert.True(t, m.Header.Durable)
		require.NoError(t, rcv.ReleaseMessage(x.t.Context(), m))
		m = x.receive10(rcv)
		assert.Zero(t, m.Header.DeliveryCount)
		assert.False(t, m.Header.FirstAcquirer)
		require.NoError(t, rcv.AcceptMessage(x.t.Context(), m))

		require.NoError(t, ch.PublishWithContext(x.t.Context(), "", "q", false, false, amqp091.Publishing{
			MessageId: "m", ContentType: "text/plain", Headers: amqp091.Table{"k": "v", "x-own": int32(3)}, Body: []byte("0-9-1"),
		}))
		m = x.receive10(rcv)
		assert.Equal(t, "0-9-1", string(m.GetData()))
		assert.Equal(t, "m", m.Properties.MessageID)
		assert.Equal(t, "v", m.ApplicationProperties["k"])
		assert.Equal(t, int32(3), m.Annotations["x-own"])
		require.NoError(t, rcv.AcceptMessage(x.t.Context(), m))
		require.NoError(t, rcv.Close(x.t.Context()))

		require.NoError(t, snd.Send(x.t.Context(), &amqp10.Message{Properties: &amqp10.MessageProperties{MessageID: id}, Data: [][]byte{[]byte("1.0")}}, nil))
		got, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, "1.0", string(got.Body))
		assert.Equal(t, "id", got.MessageId)
		assert.Equal(t, "AMQP 1.0", protocols(x)["AMQP 1.0"])
		x.close10(c)
	})
}

func protocols(x *site) map[string]string {
	all := map[string]string{}
	for _, c := range x.s.List() {
		all[c.Protocol] = c.Protocol
	}
	return all
}

// TestExpiry10: a message in the middle of a queue expires at its own deadline while a consumer of
// AMQP 1.0 holds the first and never settles, and is dead-lettered as over 0-9-1.
func TestExpiry10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.queue10("q", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
		_, err := ch.QueueDeclare("dead", true, false, false, false, nil)
		require.NoError(t, err)
		c, s := x.connect10(nil)
		rcv := x.receiver10(s, "/queues/q", &amqp10.ReceiverOptions{Credit: 1})
		snd := x.sender10(s, "/queues/q")
		for i := range 3 {
			m := &amqp10.Message{Data: [][]byte{[]byte(strconv.Itoa(i))}}
			if i == 1 {
				m.Header = &amqp10.MessageHeader{TTL: 5 * time.Second, Priority: 4}
			}
			require.NoError(t, snd.Send(x.t.Context(), m, nil))
		}
		assert.Equal(t, "0", string(x.receive10(rcv).GetData()))
		vh, _ := x.b.VHost("/")
		q, err := vh.Queues.Get("q")
		require.NoError(t, err)
		ready, unacked, _ := q.Messages.Counts()
		assert.Equal(t, []int{2, 1}, []int{ready, unacked})
		time.Sleep(5*time.Second + time.Millisecond)
		x.b.Deadlines().ExpireOverdue()
		dead := x.receiver10(s, "/queues/dead", nil)
		m := x.receive10(dead)
		assert.Equal(t, "1", string(m.GetData()))
		deaths := m.Annotations["x-death"].([]any)[0].(map[string]any)
		assert.Equal(t, "expired", deaths["reason"])
		assert.Equal(t, "5000", deaths["original-expiration"])
		x.close10(c)
		got, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		require.True(t, ok)
		assert.Equal(t, "0", string(got.Body), "what it held came back")
	})
}

// TestOutcomes: what a consumer and the broker answer.
func TestOutcomes(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead", "x-max-length": int64(3), "x-overflow": "reject-publish"})
		ch := x.queue10("dead", nil)
		require.NoError(t, ch.ExchangeDeclare("x y", "direct", true, false, false, false, nil))
		c, s := x.connect10(nil)
		snd := x.sender10(s, "/queues/q")
		second := amqp10.ReceiverSettleModeSecond
		rcv := x.receiver10(s, "/queues/q", &amqp10.ReceiverOptions{SettlementMode: &second, Credit: 1})
		for _, settle := range []func(*amqp10.Message) error{
			func(m *amqp10.Message) error { return rcv.RejectMessage(x.t.Context(), m, nil) },
			func(m *amqp10.Message) error {
				return rcv.ModifyMessage(x.t.Context(), m, &amqp10.ModifyMessageOptions{UndeliverableHere: true})
			},
		} {
			require.NoError(t, snd.Send(x.t.Context(), amqp10.NewMessage([]byte("a")), nil))
			require.NoError(t, settle(x.receive10(rcv)))
			got, ok, err := ch.Get("dead", true)
			require.NoError(t, err)
			require.True(t, ok)
			assert.Equal(t, "rejected", got.Headers["x-first-death-reason"])
		}
		require.NoError(t, rcv.Close(x.t.Context()))

		var refused *amqp10.Error
		anonymous := x.sender10(s, "")
		to := func(address string) error {
			return anonymous.Send(x.t.Context(), &amqp10.Message{Properties: &amqp10.MessageProperties{To: &address}, Data: [][]byte{nil}}, nil)
		}
		nowhere := "/exchanges/x%20y/none"
		receipt, err := anonymous.SendWithReceipt(x.t.Context(), &amqp10.Message{Properties: &amqp10.MessageProperties{To: &nowhere}, Data: [][]byte{nil}}, nil)
		require.NoError(t, err)
		state, err := receipt.Wait(x.t.Context())
		require.NoError(t, err)
		assert.IsType(t, &amqp10.StateReleased{}, state, "no queue takes it")
		require.ErrorAs(t, to("/exchanges/none/k"), &refused)
		assert.Equal(t, amqp10.ErrCond("amqp:not-found"), refused.Condition)
		for range 3 {
			require.NoError(t, to("/queues/q"))
		}
		require.ErrorAs(t, to("/queues/q"), &refused)
		assert.Equal(t, amqp10.ErrCond("amqp:resource-limit-exceeded"), refused.Condition)

		settled := amqp10.SenderSettleModeSettled
		all := x.receiver10(s, "/queues/q", &amqp10.ReceiverOptions{RequestedSenderSettleMode: &settled})
		for range 3 {
			x.receive10(all)
		}
		x.noMore10(all)
		x.close10(c)
	})
}

// TestCredit10: a consumer gets no more than it asked for.
func TestCredit10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", nil)
		c, s := x.connect10(nil)
		snd := x.sender10(s, "/queues/q")
		for range 1000 {
			require.NoError(t, snd.Send(x.t.Context(), amqp10.NewMessage([]byte("a")), nil))
		}
		rcv := x.receiver10(s, "/queues/q", &amqp10.ReceiverOptions{Credit: -1})
		require.NoError(t, rcv.IssueCredit(7))
		for range 7 {
			require.NoError(t, rcv.AcceptMessage(x.t.Context(), x.receive10(rcv)))
		}
		x.noMore10(rcv)
		vh, _ := x.b.VHost("/")
		q, err := vh.Queues.Get("q")
		require.NoError(t, err)
		ready, unacked, _ := q.Messages.Counts()
		assert.Equal(t, []int{993, 0}, []int{ready, unacked})
		require.NoError(t, rcv.IssueCredit(2000))
		time.Sleep(time.Second)
		require.NoError(t, rcv.DrainCredit(x.t.Context(), nil))
		for range 993 {
			require.NoError(t, rcv.AcceptMessage(x.t.Context(), x.receive10(rcv)))
		}
		x.close10(c)
	})
}

// TestRefusals10: what is refused, and with which condition.
func TestRefusals10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		_, err := amqp10.NewConn(x.t.Context(), x.l.dial(), &amqp10.ConnOptions{SASLType: amqp10.SASLTypePlain("guest", "wrong")})
		assert.Error(t, err)
		_, err = amqp10.NewConn(x.t.Context(), x.l.dial(), &amqp10.ConnOptions{})
		assert.Error(t, err, "without SASL")
		none, err := amqp10.NewConn(x.t.Context(), x.l.dial(), &amqp10.ConnOptions{SASLType: amqp10.SASLTypePlain("guest", "guest"), HostName: "vhost:none"})
		if err == nil {
			_, err = none.NewSession(x.t.Context(), nil)
			none.Close()
		}
		assert.ErrorContains(t, err, "vhost none not found")
		x.queue10("q", nil)
		c, s := x.connect10(nil)
		for address, want := range map[string]string{"/queues/none": "amqp:not-found", "q": "amqp:not-found", "/queues/a/b": "amqp:not-found", "/exchanges/amq.direct": "amqp:not-found"} {
			_, err := s.NewReceiver(x.t.Context(), address, nil)
			var refused *amqp10.Error
			require.ErrorAs(t, err, &refused, address)
			assert.Equal(t, amqp10.ErrCond(want), refused.Condition)
		}
		rcv := x.receiver10(s, "/queues/q", nil)
		ch := x.channel(x.connect())
		_, err = ch.QueueDelete("q", false, false, false)
		require.NoError(t, err)
		_, err = rcv.Receive(x.t.Context(), nil)
		var gone *amqp10.LinkError
		require.ErrorAs(t, err, &gone)
		assert.Equal(t, amqp10.ErrCond("amqp:resource-deleted"), gone.RemoteErr.Condition)
		assert.NotZero(t, x.s.CloseConnections("told to", func(string, string, string) bool { return true }))
		time.Sleep(time.Second)
		_, err = c.NewSession(x.t.Context(), nil)
		var closed *amqp10.ConnError
		require.ErrorAs(t, err, &closed)
		require.NotNil(t, closed.RemoteErr)
		assert.Equal(t, amqp10.ErrCond("amqp:connection:forced"), closed.RemoteErr.Condition)
	})
}

// TestHostile10: octets that are no protocol end the connection and nothing else.
func TestHostile10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		login := "AMQP\x03\x01\x00\x00\x00\x00\x00\x20\x02\x01\x00\x00\x00S\x41\xc0\x13\x02\xa3\x05PLAIN\xa0\x0b\x00guest\x00guest"
		opened := login + "AMQP\x00\x01\x00\x00" + "\x00\x00\x00\x11\x02\x00\x00\x00\x00S\x10\xc0\x04\x01\xa1\x01c"
		for name, sent := range map[string]string{
			"no sasl frame":     "AMQP\x03\x01\x00\x00\x00\x00\x00\x0b\x02\x00\x00\x00\x00S\x10\x45",
			"a huge frame":      "AMQP\x03\x01\x00\x00\xff\xff\xff\xff\x02\x01\x00\x00",
			"another protocol":  login + "AMQP\x00\x00\x09\x01",
			"open twice":        opened + "\x00\x00\x00\x11\x02\x00\x00\x00\x00S\x10\xc0\x04\x01\xa1\x01c",
			"no such session":   opened + "\x00\x00\x00\x0c\x02\x00\x00\x05\x00S\x17\x45",
			"a huge frame then": opened + "\xff\xff\xff\xff\x02\x00\x00\x00",
		} {
			nc := x.l.dial()
			go func() { nc.Write([]byte(sent)) }()
			nc.SetReadDeadline(time.Now().Add(time.Minute))
			var err error
			for b := make([]byte, 1024); err == nil; {
				_, err = nc.Read(b)
			}
			var timeout net.Error
			assert.False(t, errors.As(err, &timeout) && timeout.Timeout(), name)
			nc.Close()
		}
	})
}

// TestSilence10: a client that says nothing has ten seconds for each step until it is open. Then it has twice the announced idle time-out and some,
// and is told so; one that sends empty frames stays. The broker sends them as often as the client needs.
func TestSilence10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		began := time.Now()
		sasl := x.l.dial()
		_, err := sasl.Write([]byte(wire.SASLHeader))
		require.NoError(t, err)
		for name, silent := range map[string]net.Conn{"after SASL": sasl, "after the login": x.login10(guest10).nc} {
			_, err := io.Copy(io.Discard, silent)
			require.NoError(t, err, name)
		}
		assert.Equal(t, 10*time.Second, time.Since(began))

		steady, silent := x.raw10(), x.raw10()
		for began = time.Now(); time.Since(began) < 2*time.Minute; time.Sleep(time.Minute) {
			steady.write(wire.Heartbeat)
		}
		silent.closed("amqp:resource-limit-exceeded")
		assert.Equal(t, 136*time.Second, time.Since(began), "with a second in which it ended")
		steady.send(0, &wire.Close{})
		assert.Nil(t, next10[*wire.Close](steady).Error)
		steady.nc.Close()

		r := x.login10(guest10)
		r.send(0, &wire.Open{ContainerID: "raw", MaxFrameSize: wire.Unlimited, IdleTimeout: wire.Uint(1000)})
		next10[*wire.Open](r)
		for range 10 {
			since, frame := time.Now(), make([]byte, len(wire.Heartbeat))
			_, err := io.ReadFull(r.nc, frame)
			require.NoError(t, err)
			assert.Equal(t, wire.Heartbeat, frame)
			assert.LessOrEqual(t, time.Since(since), 500*time.Millisecond)
		}
		r.nc.Close()
		r = x.login10(guest10)
		r.send(0, &wire.Open{ContainerID: "raw", MaxFrameSize: wire.Unlimited, IdleTimeout: wire.Uint(99)})
		next10[*wire.Open](r)
		r.closed("amqp:not-allowed")
	})
}

// TestMalformed10: what cannot be parsed closes the connection, and the condition says at which level.
func TestMalformed10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		for sent, want := range map[string]string{
			"\x00\x00\x00\x07\x02\x00\x00\x00":                                                                    "amqp:connection:framing-error", // smaller than its header
			"\x00\x00\x00\x08\x01\x00\x00\x00":                                                                    "amqp:connection:framing-error", // data in the header
			"\x00\x00\x00\x08\x03\x00\x00\x00":                                                                    "amqp:connection:framing-error", // data behind the end
			"\x00\x00\x00\x08\x02\x02\x00\x00":                                                                    "amqp:connection:framing-error", // no such type
			"\x00\x10\x00\x00\x02\x00\x00\x00":                                                                    "amqp:connection:framing-error", // larger than max-frame-size
			"\x00\x00\x00\x0c\x02\x00\x00\x00abcd":                                                                "amqp:decode-error",             // no performative
			"\x00\x00\x00\x0c\x02\x00\x00\x00\x00S\x99\x45":                                                       "amqp:decode-error",             // an unknown one
			"\x00\x00\x00\x0c\x02\x00\x00\x00\x00S\x14\x45":                                                       "amqp:decode-error",             // a transfer without a handle
			"\x00\x00\x00\x0c\x02\x00\x00\x00\x00S\x12\x45":                                                       "amqp:decode-error",             // an attach without one
			"\x00\x00\x00\x0e\x02\x00\x00\x00\x00S\x14\xc0\x09\x01":                                               "amqp:decode-error",             // a list that is cut off
			"\x00\x00\x00\x10\x02\x00\x00\x00\x00S\x14\xc0\x03\x01\xa1\x00":                                       "amqp:decode-error",             // a handle that is text
			"\x00\x00\x00\x10\x02\x00\x00\x00\x00S\x14\xc0\x03\x01\x3f\x00":                                       "amqp:decode-error",             // a value of no type
			"\x00\x00\x00\x0c\x02\x01\x00\x00\x00S\x41\x45":                                                       "amqp:illegal-state",            // the login again
			string(wire.AppendFrame(nil, 0, &wire.Open{ContainerID: "again", MaxFrameSize: wire.Unlimited}, nil)): "amqp:illegal-state",
		} {
			r := x.raw10()
			r.write([]byte(sent))
			r.closed(want)
		}
	})
}

// TestTLS10: a client of AMQP 1.0 logs in with its certificate, which without one is not offered.
func TestTLS10(t *testing.T) {
	ca, dir := testenv.NewAuthority(t), t.TempDir()
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "server"})
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	addUser(t, b, "CN=app,O=Example")
	require.NoError(t, b.Accounts.SetPermission(access.Permission{User: "CN=app,O=Example", VHost: "/"}))
	nobody, external := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}, amqp10.SASLTypeExternal("")
	for _, addr := range secured(t, b, withClientCertificates(ca, cert, key)) {
		dial := func(client *tls.Config, sasl amqp10.SASLType) error {
			c, err := amqp10.Dial(t.Context(), "amqps://"+addr, &amqp10.ConnOptions{TLSConfig: client, SASLType: sasl})
			if err == nil {
				_, err = c.NewSession(t.Context(), nil)
				c.Close() // says EOF when the server hangs up first
			}
			return err
		}
		assert.NoError(t, dial(nobody, amqp10.SASLTypePlain("guest", "guest")))
		assert.ErrorContains(t, dial(nobody, external), "no supported auth mechanism")
		assert.NoError(t, dial(ca.Client(t, pkix.Name{CommonName: "app", Organization: []string{"Example"}}), external))
		assert.ErrorContains(t, dial(ca.Client(t, pkix.Name{CommonName: "stranger"}), external), "auth failed with code")
	}
}

// TestOpenProperties10: RabbitMQ's clients refuse, or warn of, a broker that does not say that it is RabbitMQ 4, and where.
func TestOpenProperties10(t *testing.T) {
	run(t, server.Options{Node: "curfew@a", Version: "v1"}, func(x *site) {
		c, _ := x.connect10(nil)
		assert.Equal(t, map[string]any{
			"product": "RabbitMQ", "version": server.RabbitMQVersion, "node": "curfew@a", "information": "Curfew v1, which works as RabbitMQ does",
		}, c.Properties())
	})
}

// TestConsumerPriority10: the link property rabbitmq:priority, as in RabbitMQ 4.
func TestConsumerPriority10(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.queue10("q", nil)
		_, s := x.connect10(nil)
		low := x.receiver10(s, "/queues/q", nil)
		high := x.receiver10(s, "/queues/q", &amqp10.ReceiverOptions{Properties: map[string]any{"rabbitmq:priority": int32(5)}})
		snd := x.sender10(s, "/queues/q")
		synctest.Wait() // both have given credit
		require.NoError(t, snd.Send(x.t.Context(), amqp10.NewMessage([]byte("a")), nil))
		assert.Equal(t, []byte("a"), x.receive10(high).GetData())
		assert.Nil(t, low.Prefetched())
		for _, wrong := range []any{"high", uint64(5), amqp10.Symbol("5"), []any{int32(5)}, map[string]any{"a": int32(5)}, amqp10.UUID{}, time.Now()} {
			_, err := s.NewReceiver(x.t.Context(), "/queues/q", &amqp10.ReceiverOptions{Properties: map[string]any{"rabbitmq:priority": wrong}})
			assert.ErrorContains(t, err, "rabbitmq:priority is not", "%T", wrong)
			_, s = x.connect10(nil)
		}
	})
}
