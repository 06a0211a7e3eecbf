package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/certs"
)

// tlsTimeout is how long a TLS handshake may take.
const tlsTimeout = 5 * time.Second

// secure performs the TLS handshake on a TLS connection.
func (c *connection) secure() error {
	t, ok := c.nc.(*tls.Conn)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, tlsTimeout)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("server: TLS handshake: %w", err)
	}
	state := t.ConnectionState()
	c.tls = &state
	return nil
}

// certificate returns the client certificate that TLS has verified, or nil.
func (c *connection) certificate() *x509.Certificate {
	if c.tls == nil || len(c.tls.VerifiedChains) == 0 {
		return nil
	}
	return c.tls.PeerCertificates[0]
}

// mechanisms returns the SASL mechanisms that connection.start offers.
func (c *connection) mechanisms() string {
	if c.certificate() != nil {
		return "PLAIN AMQPLAIN EXTERNAL"
	}
	return "PLAIN AMQPLAIN"
}

// login verifies the client's SASL response.
func (c *connection) login(m *amqp.ConnectionStartOk) error {
	c.properties, c.mechanism = slices.Clone(amqp.AppendTable(nil, m.ClientProperties)), m.Mechanism
	announced, _ := m.ClientProperties["capabilities"].(amqp.Table)
	c.cancelNotify, _ = announced["consumer_cancel_notify"].(bool)
	c.takesBlocked, _ = announced["connection.blocked"].(bool)
	c.authClose, _ = announced["authentication_failure_close"].(bool)
	user, err := c.authenticate(m)
	if e, ok := errors.AsType[*amqp.Exception](err); ok {
		return e
	}
	if err != nil {
		return c.refuseLogin(m.Mechanism, err)
	}
	c.nc.SetDeadline(time.Now().Add(handshakeTimeout)) // the login may have waited because of wrong passwords
	c.user = user.Name
	c.phase = awaitTuneOk
	o := &c.srv.opts
	c.out.send(0, &amqp.ConnectionTune{Tuning: amqp.Tuning{
		ChannelMax: o.ChannelMax, FrameMax: o.FrameMax, Heartbeat: uint16(max(o.Heartbeat, 0) / time.Second),
	}})
	return nil
}

// authenticate finds out who the user is. An exception means that the mechanism is
// impossible. Any other error means that the login is refused; it is for the log.
func (c *connection) authenticate(m *amqp.ConnectionStartOk) (access.User, error) {
	switch m.Mechanism {
	case "PLAIN":
		return c.byPassword(plain(m.Response))
	case "AMQPLAIN":
		return c.byPassword(amqplain(m.Response))
	case "EXTERNAL":
		if cert := c.certificate(); cert != nil {
			return c.byCertificate(cert)
		}
		return access.User{}, amqp.NewException(amqp.CommandInvalid, 10, 11, "invalid authentication mechanism '%s'", m.Mechanism)
	}
	return access.User{}, amqp.NewException(amqp.CommandInvalid, 10, 11, "unknown authentication mechanism '%s'", m.Mechanism)
}

func (c *connection) byPassword(name, password string, ok bool) (access.User, error) {
	if !ok {
		return access.User{}, errors.New("the response is malformed")
	}
	if c.tls == nil && c.remote() {
		c.srv.clearText.Do(func() {
			c.log.Warn("a password was sent over the network without TLS; others may be, this is logged once")
		})
	}
	return c.srv.opts.Broker.Authenticate(c.ctx, name, password, c.peer())
}

func (c *connection) byCertificate(cert *x509.Certificate) (access.User, error) {
	name, ok := c.srv.opts.NameFrom.Name(cert)
	if !ok {
		return access.User{}, fmt.Errorf("the certificate %q has no name that could be a user name", certs.Subject(cert))
	}
	return c.srv.opts.Broker.Identify(name, c.peer())
}

// plain parses the PLAIN response (RFC 4616): authorization id NUL name NUL password.
func plain(response []byte) (user, password string, ok bool) {
	parts := strings.Split(string(response), "\x00")
	if len(parts) != 3 {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// amqplain parses the AMQPLAIN response: a table of LOGIN and PASSWORD without its length.
func amqplain(response []byte) (user, password string, ok bool) {
	t, err := amqp.ParseTableEntries(response, preAuthTables)
	if err != nil {
		return "", "", false
	}
	user, okUser := t["LOGIN"].(string)
	password, okPassword := t["PASSWORD"].(string)
	return user, password, okUser && okPassword
}

// peer returns the client's address. For a pipe or a Unix socket it is the zero address.
func (c *connection) peer() netip.Addr {
	if tcp, ok := c.nc.RemoteAddr().(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// remote reports whether the client is on another machine.
func (c *connection) remote() bool {
	peer := c.peer()
	return peer.IsValid() && !peer.IsLoopback()
}

// refuseLogin notifies a client that supports it. For any other client the socket is
// closed, as AMQP 0-9-1 requires (RabbitMQ: Authentication Failure Notifications).
func (c *connection) refuseLogin(mechanism string, why error) error {
	c.log.Warn("login refused", zap.String("mechanism", mechanism), zap.Error(why))
	if !c.authClose {
		return errEnd
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0,
		"Login was refused using authentication mechanism %s. For details see the broker logfile.", mechanism)
}

// updateSecret accepts a new credential (RabbitMQ: connection.update-secret). Passwords are
// verified only at login, so any credential is accepted and none changes anything, as with
// RabbitMQ's internal users.
func (c *connection) updateSecret(m *amqp.ConnectionUpdateSecret) error {
	c.log.Debug("secret updated", zap.String("user", c.user), zap.String("reason", m.Reason))
	c.out.send(0, &amqp.ConnectionUpdateSecretOk{})
	return nil
}
