package amqp_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
)

const frameMax = amqp.MinFrameSize

// script answers one client over a pipe, using this package only: each method with its -ok,
// a consume and a get with a message, a publish with a confirm.
type script struct {
	t       *testing.T
	conn    net.Conn
	in      []byte
	methods []amqp.Method
	message message // what is delivered, then what was published last
}

type message struct {
	props amqp.Properties
	body  []byte
}

// start connects a client to the script; wait returns when the script ended.
func (s *script) start(auth amqp091.Authentication) (conn *amqp091.Connection, wait func()) {
	client, server := net.Pipe()
	s.conn = server
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = server.Close() }()
		assert.NoError(s.t, s.run())
	}()
	conn, err := amqp091.Open(client, amqp091.Config{Vhost: "/", SASL: []amqp091.Authentication{auth}})
	require.NoError(s.t, err)
	return conn, func() { <-done }
}

func (s *script) run() error {
	hello := make([]byte, len(amqp.ProtocolHeader))
	if _, err := io.ReadFull(s.conn, hello); err != nil || string(hello) != amqp.ProtocolHeader {
		return fmt.Errorf("protocol header %q: %w", hello, err)
	}
	err := s.send(0, &amqp.ConnectionStart{
		VersionMinor: 9, ServerProperties: headers, Mechanisms: "PLAIN AMQPLAIN", Locales: "en_US",
	})
	for err == nil {
		var m amqp.Method
		var channel uint16
		if m, channel, err = s.receive(); err != nil {
			break
		}
		if err = s.answer(channel, m); err == nil && amqp.IDOf(m) == amqp.ConnectionCloseID {
			return nil
		}
	}
	return err
}

func (s *script) frame() (amqp.Frame, error) {
	for {
		f, n, err := amqp.ParseFrame(s.in, frameMax)
		if err != nil {
			return f, err
		}
		if n > 0 {
			f.Payload = bytes.Clone(f.Payload)
			s.in = s.in[n:]
			return f, nil
		}
		chunk := make([]byte, 4096)
		n, err = s.conn.Read(chunk)
		if err != nil {
			return f, err
		}
		s.in = append(s.in, chunk[:n]...)
	}
}

// receive parses the next method and compares what this package would have sent for it with
// what the client sent. The order in a table is the client's.
func (s *script) receive() (amqp.Method, uint16, error) {
	f, err := s.frame()
	if err != nil {
		return nil, 0, err
	}
	m, err := amqp.ParseMethod(f.Payload, amqp.Limits{})
	if err != nil {
		return nil, 0, err
	}
	ours := amqp.AppendMethod(nil, f.Channel, m)
	ours = ours[amqp.FrameOverhead-1 : len(ours)-1]
	assert.Equal(s.t, sorted(f.Payload), sorted(ours), amqp.IDOf(m))
	if amqp.IDOf(m) != amqp.ConnectionStartOkID {
		assert.Equal(s.t, f.Payload, ours, amqp.IDOf(m))
	}
	s.methods = append(s.methods, m)
	return m, f.Channel, nil
}

func sorted(b []byte) []byte {
	b = bytes.Clone(b)
	slices.Sort(b)
	return b
}

func (s *script) send(channel uint16, m amqp.Method) error {
	_, err := s.conn.Write(amqp.AppendMethod(nil, channel, m))
	return err
}

// sendMessage sends the message after the method frame in b.
func (s *script) sendMessage(b []byte, channel uint16) error {
	b = amqp.AppendContent(b, channel, s.message.props.Append(nil), s.message.body, frameMax)
	_, err := s.conn.Write(b)
	return err
}

func (s *script) answer(channel uint16, m amqp.Method) error {
	exchange, key := []byte("e"), []byte("k")
	switch m := m.(type) {
	case *amqp.BasicPublish:
		return s.published(channel, m)
	case *amqp.BasicConsume:
		if err := s.send(channel, &amqp.BasicConsumeOk{ConsumerTag: m.ConsumerTag}); err != nil {
			return err
		}
		return s.sendMessage(amqp.AppendDeliver(nil, channel, m.ConsumerTag, 7, true, exchange, key), channel)
	case *amqp.BasicGet:
		if m.Queue == "empty" {
			return s.send(channel, &amqp.BasicGetEmpty{})
		}
		return s.sendMessage(amqp.AppendGetOk(nil, channel, 7, true, exchange, key, 9), channel)
	}
	if reply := replyTo(m); reply != nil {
		return s.send(channel, reply)
	}
	return nil
}

func (s *script) published(channel uint16, m *amqp.BasicPublish) error {
	f, err := s.frame()
	if err != nil {
		return err
	}
	h, err := amqp.ParseContentHeader(f.Payload)
	if err != nil {
		return err
	}
	s.message = message{}
	if s.message.props, err = amqp.ParseProperties(h.Properties, amqp.Limits{}); err != nil {
		return err
	}
	assert.Equal(s.t, sorted(h.Properties), sorted(s.message.props.Append(nil)))
	for uint64(len(s.message.body)) < h.BodySize {
		if f, err = s.frame(); err != nil {
			return err
		}
		s.message.body = append(s.message.body, f.Payload...)
	}
	b := amqp.AppendReturn(nil, channel, amqp.NoRoute, "NO_ROUTE", []byte(m.Exchange), []byte(m.RoutingKey))
	if err := s.sendMessage(b, channel); err != nil {
		return err
	}
	_, err = s.conn.Write(amqp.AppendAck(nil, channel, 1, false))
	return err
}

// replyTo returns the method that a client waits for after m, or nil.
func replyTo(m amqp.Method) amqp.Method {
	switch m := m.(type) {
	case *amqp.ConnectionStartOk:
		return &amqp.ConnectionTune{Tuning: amqp.Tuning{ChannelMax: 2047, FrameMax: frameMax, Heartbeat: 60}}
	case *amqp.QueueDeclare:
		if m.Passive {
			e := amqp.NewException(amqp.NotFound, 50, 10, "no queue '%s' in vhost '/'", m.Queue)
			return &amqp.ChannelClose{Closing: amqp.Closing{ReplyCode: e.Code, ReplyText: e.Text, ClassID: e.Class, MethodID: e.Method}}
		}
		return &amqp.QueueDeclareOk{Queue: m.Queue, MessageCount: 3, ConsumerCount: 2}
	case *amqp.BasicCancel:
		return &amqp.BasicCancelOk{ConsumerTag: m.ConsumerTag}
	case *amqp.ChannelFlow:
		return &amqp.ChannelFlowOk{Active: m.Active}
	}
	return plainReplies[amqp.IDOf(m)]
}

var plainReplies = map[amqp.MethodID]amqp.Method{
	amqp.ConnectionOpenID:         &amqp.ConnectionOpenOk{},
	amqp.ConnectionUpdateSecretID: &amqp.ConnectionUpdateSecretOk{},
	amqp.ConnectionCloseID:        &amqp.ConnectionCloseOk{},
	amqp.ChannelOpenID:            &amqp.ChannelOpenOk{},
	amqp.ChannelCloseID:           &amqp.ChannelCloseOk{},
	amqp.ExchangeDeclareID:        &amqp.ExchangeDeclareOk{},
	amqp.ExchangeDeleteID:         &amqp.ExchangeDeleteOk{},
	amqp.ExchangeBindID:           &amqp.ExchangeBindOk{},
	amqp.ExchangeUnbindID:         &amqp.ExchangeUnbindOk{},
	amqp.QueueBindID:              &amqp.QueueBindOk{},
	amqp.QueueUnbindID:            &amqp.QueueUnbindOk{},
	amqp.QueuePurgeID:             &amqp.QueuePurgeOk{MessageCount: 4},
	amqp.QueueDeleteID:            &amqp.QueueDeleteOk{MessageCount: 5},
	amqp.BasicQosID:               &amqp.BasicQosOk{},
	amqp.BasicRecoverID:           &amqp.BasicRecoverOk{},
	amqp.ConfirmSelectID:          &amqp.ConfirmSelectOk{},
	amqp.TxSelectID:               &amqp.TxSelectOk{},
	amqp.TxCommitID:               &amqp.TxCommitOk{},
	amqp.TxRollbackID:             &amqp.TxRollbackOk{},
}
