package server

import (
	"io"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker/amqp"
)

// protocolHeader reads the first eight octets and answers with connection.start. A client
// of another protocol is sent ours and is cut off (AMQP 0-9-1 §4.2.2).
func (c *connection) protocolHeader() error {
	c.nc.SetDeadline(time.Now().Add(handshakeTimeout))
	var header [len(amqp.ProtocolHeader)]byte
	if _, err := io.ReadFull(c.nc, header[:]); err != nil {
		return err
	}
	if string(header[:]) != amqp.ProtocolHeader {
		c.log.Warn("not an AMQP 0-9-1 client", zap.String("hint", headerHint(header[:])), zap.Binary("sent", header[:]))
		c.out.mu.Lock()
		c.out.buf = append(c.out.buf, amqp.ProtocolHeader...)
		c.out.flushLocked()
		c.out.mu.Unlock()
		return errEnd
	}
	c.out.send(0, &amqp.ConnectionStart{
		VersionMajor: 0, VersionMinor: 9, ServerProperties: c.srv.properties(),
		Mechanisms: c.mechanisms(), Locales: "en_US",
	})
	return nil
}

func headerHint(h []byte) string {
	switch {
	case strings.HasPrefix(string(h), "AMQP\x00\x01\x00\x00"), strings.HasPrefix(string(h), "AMQP\x03\x01\x00\x00"):
		return "the client speaks AMQP 1.0; use an AMQP 0-9-1 client"
	case h[0] == 0x16 && h[1] == 3:
		return "the client speaks TLS; use amqp:// on this port, or amqps:// on the one for TLS"
	case strings.HasPrefix(string(h), "GET ") || strings.HasPrefix(string(h), "POST "):
		return "the client speaks HTTP; this is the AMQP port"
	}
	return "unknown protocol"
}

// properties returns the server properties of connection.start. The version is RabbitMQ's,
// since some clients compare it with RabbitMQ's versions. A capability is listed only if
// the server has it.
func (s *Server) properties() amqp.Table {
	return amqp.Table{
		"product": "Curfew", "version": s.opts.Compat, "product_version": s.opts.Version, "platform": "Go " + runtime.Version()[len("go"):],
		"information": "A message broker that keeps deadlines",
		"capabilities": amqp.Table{
			"publisher_confirms":           true,
			"exchange_exchange_bindings":   true,
			"basic.nack":                   true,
			"consumer_cancel_notify":       true,
			"connection.blocked":           true,
			"consumer_priorities":          true,
			"per_consumer_qos":             true,
			"direct_reply_to":              true,
			"authentication_failure_close": true,
		},
	}
}

// connectionMethod handles a frame on channel 0.
func (c *connection) connectionMethod(f amqp.Frame) error {
	if f.Type != amqp.FrameMethod {
		return amqp.NewException(amqp.UnexpectedFrame, 0, 0, "content frame on channel 0")
	}
	id, err := amqp.PeekMethod(f.Payload)
	if err != nil {
		return err
	}
	if id.Class() != amqp.ClassConnection {
		return amqp.NewException(amqp.CommandInvalid, id.Class(), id.Method(), "method %s on channel 0", id)
	}
	m, err := amqp.ParseMethod(f.Payload, c.tables)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *amqp.ConnectionStartOk:
		if c.phase == awaitStartOk {
			return c.login(m)
		}
	case *amqp.ConnectionTuneOk:
		if c.phase == awaitTuneOk {
			return c.tune(m)
		}
	case *amqp.ConnectionOpen:
		if c.phase == awaitOpen {
			return c.open(m)
		}
	case *amqp.ConnectionUpdateSecret:
		if c.phase == running {
			return c.updateSecret(m)
		}
	case *amqp.ConnectionClose:
		c.flush()
		c.startClosing() // the client closes the socket: many clients take an end of the stream before close-ok for an error
		c.out.send(0, &amqp.ConnectionCloseOk{})
		return nil
	case *amqp.ConnectionCloseOk:
		c.ended = true
		return nil
	}
	return amqp.NewException(amqp.CommandInvalid, id.Class(), id.Method(), "unexpected method %s", id)
}

// tune negotiates the limits: ours, unless the client asks for less.
func (c *connection) tune(m *amqp.ConnectionTuneOk) error {
	o := &c.srv.opts
	if m.FrameMax > o.FrameMax || m.FrameMax != 0 && m.FrameMax < amqp.MinFrameSize {
		return negotiation("frame_max", m.FrameMax, amqp.MinFrameSize, o.FrameMax)
	}
	if m.ChannelMax > o.ChannelMax {
		return negotiation("channel_max", uint32(m.ChannelMax), 0, uint32(o.ChannelMax))
	}
	c.frameMax, c.chanMax = m.FrameMax, m.ChannelMax
	if c.frameMax == 0 {
		c.frameMax = o.FrameMax
	}
	if c.chanMax == 0 {
		c.chanMax = o.ChannelMax
	}
	c.heartbeat = time.Duration(m.Heartbeat) * time.Second
	c.tables = amqp.Limits{}
	c.phase = awaitOpen
	return nil
}

func negotiation(what string, got, low, high uint32) error {
	if got < low {
		return amqp.NewException(amqp.NotAllowed, 10, 31, "negotiated %s = %d is lower than the minimum allowed value (%d)", what, got, low)
	}
	return amqp.NewException(amqp.NotAllowed, 10, 31, "negotiated %s = %d is higher than the maximum allowed value (%d)", what, got, high)
}

func (c *connection) open(m *amqp.ConnectionOpen) error {
	session, err := c.srv.opts.Broker.OpenSession(c.user, m.VirtualHost, c.forceClose)
	if err != nil {
		return amqp.Answering(err, m.ID())
	}
	c.session, c.vhost, c.rights, c.phase = session, session.VHost(), session.Rights(), running
	c.openAccount()
	c.updatePaced()
	c.nc.SetDeadline(time.Time{})
	if c.heartbeat > 0 {
		c.out.heartbeats(c.heartbeat)
	}
	c.srv.handshakeEnded(c)
	c.list()
	c.out.send(0, &amqp.ConnectionOpenOk{})
	c.log.Debug("connection open", zap.String("user", c.user), zap.String("vhost", m.VirtualHost))
	return nil
}
