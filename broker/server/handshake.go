package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/manage"
)

// handshakeTimeout is how long a client may take for its first octets, TLS included, and then for each step of the login.
const handshakeTimeout = 10 * time.Second

// handshake is what a connection needs until it is open: who the client is, how it logs in,
// which limits it asks for. It belongs to the connection's reader, but for admitted, which does not change.
type handshake struct {
	admitted
	c      *connection
	client client

	mechanism   string        // of the login
	properties  []byte        // of the client, encoded
	tellRefusal bool          // the client supports connection.close after a failed login
	heartbeat   time.Duration // 0: none
}

func newHandshake(c *connection) *handshake {
	h := &handshake{admitted: admitted{began: time.Now(), socket: c.socket}, c: c, client: client{Log: c.log}}
	if tcp, ok := c.nc.RemoteAddr().(*net.TCPAddr); ok {
		h.address = tcp.AddrPort().Addr().Unmap()
		h.client.Address, h.client.Remote = h.address, !h.address.IsLoopback()
	}
	return h
}

// begin reads the client's first eight octets and answers with connection.start. A client of
// HTTP is handed over, if there is somebody to take it. A client of another protocol is sent
// ours and is cut off (AMQP 0-9-1 §4.2.2).
func (h *handshake) begin() error {
	c := h.c
	header, err := h.greeting()
	if err != nil {
		return err
	}
	c.nc.SetDeadline(time.Now().Add(handshakeTimeout)) // for the login
	if c.srv.opts.HTTP != nil && h.client.TLS == nil && isHTTP(header[:]) {
		return c.srv.handOver(c, header[:])
	}
	if string(header[:]) == amqp10.SASLHeader {
		c.ten = begin10(c)
		return nil
	}
	if string(header[:]) != amqp.ProtocolHeader {
		c.log.Warn("not an AMQP 0-9-1 client", zap.String("hint", headerHint(header[:])), zap.Binary("sent", header[:]))
		ours := amqp.ProtocolHeader
		if string(header[:]) == amqp10.ProtocolHeader { // AMQP 1.0 §2.2: what is missing is the login
			ours = amqp10.SASLHeader
		}
		c.out.SendRaw([]byte(ours))
		return errEnd
	}
	c.out.Send(0, &amqp.ConnectionStart{
		VersionMajor: 0, VersionMinor: 9, Mechanisms: h.client.Mechanisms(), Locales: "en_US",
		ServerProperties: amqp.Table{ // the version is RabbitMQ's, since some clients compare it with RabbitMQ's versions
			"product": "Curfew", "version": RabbitMQVersion, "product_version": c.srv.opts.Version, "platform": "Go " + runtime.Version()[len("go"):],
			"information": "A message broker that keeps deadlines", "capabilities": capabilities,
		},
	})
	return nil
}

// greeting returns the first octets that the client sends: within TLS, if that is what it begins with
// and there is a certificate.
func (h *handshake) greeting() (header [len(amqp.ProtocolHeader)]byte, err error) {
	c := h.c
	c.nc.SetDeadline(h.began.Add(handshakeTimeout))
	for {
		if err := h.secure(); err != nil {
			return header, err
		}
		if _, err := io.ReadFull(c.nc, header[:]); err != nil || string(header[:2]) != clientHello || h.client.TLS != nil || c.srv.opts.TLS == nil {
			return header, err
		}
		c.nc = tls.Server(&begun{c.nc, slices.Clone(header[:])}, c.srv.opts.TLS)
	}
}

// begun is a connection whose first octets have been read. They are read again.
type begun struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (b *begun) Read(p []byte) (n int, err error) {
	if len(b.first) == 0 {
		return b.Conn.Read(p)
	}
	n = copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}

// CloseWrite ends what is written, and lets the client read it (net/http: after an answer to a request that was not read whole).
func (b *begun) CloseWrite() error {
	if half, is := b.Conn.(interface{ CloseWrite() error }); is {
		return half.CloseWrite()
	}
	return nil
}

// clientHello is how a client of TLS begins.
const clientHello = "\x16\x03"

// isHTTP reports whether this begins a request line.
func isHTTP(first []byte) bool {
	method, _, is := strings.Cut(string(first), " ")
	return is && slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}, method)
}

// secure performs the TLS handshake on a TLS connection.
func (h *handshake) secure() error {
	t, ok := h.c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	if err := t.HandshakeContext(h.c.ctx); err != nil {
		return fmt.Errorf("server: TLS handshake: %w", err)
	}
	state := t.ConnectionState()
	h.client.TLS = &state
	return nil
}

func headerHint(h []byte) string {
	switch {
	case string(h) == amqp10.ProtocolHeader:
		return "the client speaks AMQP 1.0 without SASL; let it log in"
	case string(h[:2]) == clientHello:
		return "the client speaks TLS, for which there is no certificate; use amqp://"
	case isHTTP(h):
		return "the client speaks HTTP; this is the AMQP port"
	}
	return "unknown protocol"
}

// capabilities are listed in connection.start only if the server has them.
var capabilities = amqp.Table{
	"publisher_confirms": true, "exchange_exchange_bindings": true, "basic.nack": true, "consumer_cancel_notify": true, "connection.blocked": true,
	"consumer_priorities": true, "per_consumer_qos": true, "direct_reply_to": true, "authentication_failure_close": true,
}

// login verifies the client's SASL response.
func (h *handshake) login(m *amqp.ConnectionStartOk) error {
	c := h.c
	h.properties, h.mechanism = slices.Clone(amqp.AppendTable(nil, m.ClientProperties)), m.Mechanism
	announced, _ := m.ClientProperties["capabilities"].(amqp.Table)
	c.cancelNotify, _ = announced["consumer_cancel_notify"].(bool)
	c.takesBlocked, _ = announced["connection.blocked"].(bool)
	h.tellRefusal, _ = announced["authentication_failure_close"].(bool)
	user, err := c.srv.logins.Authenticate(c.ctx, &h.client, m.Mechanism, m.Response)
	c.srv.Logins.Note(err)
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		return e
	}
	if err != nil {
		return h.refuseLogin(err)
	}
	c.nc.SetDeadline(time.Now().Add(handshakeTimeout)) // the login may have waited because of wrong passwords
	c.userName = user.Name
	c.phase = awaitTuneOk
	o := &c.srv.opts
	c.out.Send(0, &amqp.ConnectionTune{Tuning: amqp.Tuning{
		ChannelMax: channelMax, FrameMax: o.FrameMax, Heartbeat: uint16(offeredHeartbeat / time.Second),
	}})
	return nil
}

// refuseLogin notifies a client that supports it. For any other client the socket is
// closed, as AMQP 0-9-1 requires (RabbitMQ: Authentication Failure Notifications).
func (h *handshake) refuseLogin(why error) error {
	h.c.log.Warn("login refused", zap.String("mechanism", h.mechanism), zap.Error(why))
	if !h.tellRefusal {
		return errEnd
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0,
		"Login was refused using authentication mechanism %s. For details see the broker logfile.", h.mechanism)
}

// tune negotiates the limits: ours, unless the client asks for less.
func (h *handshake) tune(m *amqp.ConnectionTuneOk) error {
	c, o := h.c, &h.c.srv.opts
	if m.FrameMax > o.FrameMax || m.FrameMax != 0 && m.FrameMax < amqp.MinFrameSize {
		return negotiation("frame_max", m.FrameMax, amqp.MinFrameSize, o.FrameMax)
	}
	if m.ChannelMax > channelMax {
		return negotiation("channel_max", uint32(m.ChannelMax), 0, channelMax)
	}
	c.frameMax, c.channelMax = m.FrameMax, m.ChannelMax
	c.frameMax = cmp.Or(c.frameMax, o.FrameMax)
	c.channelMax = cmp.Or(c.channelMax, channelMax)
	c.out.SetFrameMax(c.frameMax)
	h.heartbeat = time.Duration(m.Heartbeat) * time.Second
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

// open opens the connection, which ends the handshake.
func (h *handshake) open(m *amqp.ConnectionOpen) error {
	c := h.c
	if err := h.enter(m.VirtualHost); err != nil {
		return amqp.Answering(err, amqp.IDOf(m))
	}
	if h.heartbeat > 0 {
		c.out.Heartbeats(h.heartbeat, amqp.AppendHeartbeat(nil))
	}
	c.out.Send(0, &amqp.ConnectionOpenOk{})
	return nil
}

// enter opens the session of the user, from which on the connection counts as open.
func (h *handshake) enter(vhost string) error {
	c := h.c
	session, err := c.srv.opts.Broker.OpenSession(c.userName, vhost, c.forceClose)
	if err != nil {
		return err
	}
	c.session, c.phase, c.handshake = session, running, nil
	c.user = manage.Declarer{Rights: session.Rights(), VHost: session.VHost, Owner: c}
	account := c.srv.opts.Broker.Clients.Open(c.userName, c.evict)
	c.usage.Account = account
	c.out.OpenAccount(account)
	c.updatePaced()
	c.deadline.open(h.heartbeat)
	c.srv.handshakeEnded(h)
	c.list(h)
	c.log.Debug("connection open", zap.String("user", c.userName), zap.String("vhost", vhost))
	return nil
}
