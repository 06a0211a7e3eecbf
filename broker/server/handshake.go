package server

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker/amqp"
)

// protocolHeader reads the first eight octets and answers connection.start. A
// client of another protocol is told ours and cut off (AMQP 0-9-1 §4.2.2).
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
		c.out.flush()
		c.out.mu.Unlock()
		return errEnd
	}
	c.out.send(0, &amqp.ConnectionStart{
		VersionMajor: 0, VersionMinor: 9, ServerProperties: c.srv.properties(),
		Mechanisms: "PLAIN AMQPLAIN", Locales: "en_US",
	})
	return nil
}

func headerHint(h []byte) string {
	switch {
	case strings.HasPrefix(string(h), "AMQP\x00\x01\x00\x00"), strings.HasPrefix(string(h), "AMQP\x03\x01\x00\x00"):
		return "the client speaks AMQP 1.0; use an AMQP 0-9-1 client"
	case h[0] == 0x16 && h[1] == 3:
		return "the client speaks TLS; use amqp:// on this port"
	case strings.HasPrefix(string(h), "GET ") || strings.HasPrefix(string(h), "POST "):
		return "the client speaks HTTP; this is the AMQP port"
	}
	return "unknown protocol"
}

// properties is what connection.start says of the server. A capability is named
// only if it is there.
func (s *Server) properties() amqp.Table {
	return amqp.Table{
		"product": "Curfew", "version": s.opts.Version, "platform": "Go " + runtime.Version()[len("go"):],
		"information": "A message broker that keeps deadlines",
		"capabilities": amqp.Table{
			"publisher_confirms":           true,
			"exchange_exchange_bindings":   true,
			"basic.nack":                   true,
			"consumer_cancel_notify":       true,
			"connection.blocked":           true,
			"per_consumer_qos":             true,
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
	case *amqp.ConnectionClose:
		c.flush()
		c.leave()
		c.out.send(0, &amqp.ConnectionCloseOk{})
		c.ended = true
		return nil
	case *amqp.ConnectionCloseOk:
		c.ended = true
		return nil
	}
	return amqp.NewException(amqp.CommandInvalid, id.Class(), id.Method(), "unexpected method %s", id)
}

// login checks SASL's answer; both mechanisms carry name and password in clear.
func (c *connection) login(m *amqp.ConnectionStartOk) error {
	c.properties, c.mechanism = m.ClientProperties, m.Mechanism
	c.srv.totals.logins.Add(1)
	announced, _ := m.ClientProperties["capabilities"].(amqp.Table)
	c.cancelNotify, _ = announced["consumer_cancel_notify"].(bool)
	c.takesBlocked, _ = announced["connection.blocked"].(bool)
	c.authClose, _ = announced["authentication_failure_close"].(bool)
	user, password, ok := "", "", false
	switch m.Mechanism {
	case "PLAIN":
		user, password, ok = plain(m.Response)
	case "AMQPLAIN":
		user, password, ok = amqplain(m.Response)
	default:
		return amqp.NewException(amqp.CommandInvalid, 10, 11, "unknown authentication mechanism '%s'", m.Mechanism)
	}
	if !ok {
		return c.refuseLogin(m.Mechanism, errors.New("the response cannot be read"))
	}
	login, err := c.srv.opts.Broker.Authenticate(c.ctx, user, password, c.peer())
	if err != nil {
		return c.refuseLogin(m.Mechanism, err)
	}
	c.nc.SetDeadline(time.Now().Add(handshakeTimeout)) // guessing may have made it wait
	c.user = login.Name
	c.phase = awaitTuneOk
	o := &c.srv.opts
	c.out.send(0, &amqp.ConnectionTune{Tuning: amqp.Tuning{
		ChannelMax: o.ChannelMax, FrameMax: o.FrameMax, Heartbeat: uint16(max(o.Heartbeat, 0) / time.Second),
	}})
	return nil
}

// plain parses RFC 4616: authorization id NUL name NUL password.
func plain(response []byte) (user, password string, ok bool) {
	parts := strings.Split(string(response), "\x00")
	if len(parts) != 3 {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// amqplain parses the table LOGIN, PASSWORD without its length.
func amqplain(response []byte) (user, password string, ok bool) {
	t, err := amqp.ParseTableEntries(response, preAuthTables)
	if err != nil {
		return "", "", false
	}
	user, okUser := t["LOGIN"].(string)
	password, okPassword := t["PASSWORD"].(string)
	return user, password, okUser && okPassword
}

// peer is the client's address; the zero address is a pipe's or a Unix socket's.
func (c *connection) peer() netip.Addr {
	if tcp, ok := c.nc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// refuseLogin tells a client that understands it; another finds the socket
// closed, as 0-9-1 has it (RabbitMQ: Authentication Failure Notifications).
func (c *connection) refuseLogin(mechanism string, why error) error {
	c.log.Warn("login refused", zap.String("mechanism", mechanism), zap.Error(why))
	c.srv.totals.loginsFailed.Add(1)
	if !c.authClose {
		return errEnd
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0,
		"Login was refused using authentication mechanism %s. For details see the broker logfile.", mechanism)
}

// tune settles the limits: ours unless the client asks for less.
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
	c.nc.SetDeadline(time.Time{})
	if c.heartbeat > 0 {
		c.interval <- c.heartbeat
	}
	c.show()
	c.out.send(0, &amqp.ConnectionOpenOk{})
	c.log.Debug("connection open", zap.String("user", c.user), zap.String("vhost", m.VirtualHost))
	return nil
}
