package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
)

// client is what is known of a client before it has logged in.
type client struct {
	Address netip.Addr           // zero for a pipe or a Unix socket
	Remote  bool                 // it is on another machine
	TLS     *tls.ConnectionState // nil: none
	Log     *zap.Logger
}

// Mechanisms returns the mechanisms that connection.start offers.
func (c *client) Mechanisms() string {
	if c.certificate() != nil {
		return "PLAIN AMQPLAIN EXTERNAL"
	}
	return "PLAIN AMQPLAIN"
}

// certificate returns the client certificate that TLS has verified, or nil.
func (c *client) certificate() *x509.Certificate {
	if c.TLS == nil || len(c.TLS.VerifiedChains) == 0 {
		return nil
	}
	return c.TLS.PeerCertificates[0]
}

// authenticator logs clients in. It is safe for concurrent use.
type authenticator struct {
	Broker   *broker.Broker
	NameFrom access.NameFrom // which part of a certificate is the user name
	Limits   amqp.Limits     // of the tables that an unknown client may send

	clearText sync.Once // a password was sent in clear text
}

// Authenticate finds out who the user is. An *amqp.Exception means that the mechanism is
// impossible. Any other error means that the login is refused; it is for the log. Where
// passwords are guessed it takes a while; it returns early when ctx ends.
func (a *authenticator) Authenticate(ctx context.Context, c *client, mechanism string, response []byte) (access.User, error) {
	switch mechanism {
	case "PLAIN":
		name, password, ok := plain(response)
		return a.byPassword(ctx, c, name, password, ok)
	case "AMQPLAIN":
		name, password, ok := amqplain(response, a.Limits)
		return a.byPassword(ctx, c, name, password, ok)
	case "EXTERNAL":
		if cert := c.certificate(); cert != nil {
			return a.byCertificate(c, cert)
		}
		return access.User{}, amqp.NewException(amqp.CommandInvalid, 10, 11, "invalid authentication mechanism '%s'", mechanism)
	}
	return access.User{}, amqp.NewException(amqp.CommandInvalid, 10, 11, "unknown authentication mechanism '%s'", mechanism)
}

func (a *authenticator) byPassword(ctx context.Context, c *client, name, password string, ok bool) (access.User, error) {
	if !ok {
		return access.User{}, errors.New("the response is malformed")
	}
	if c.TLS == nil && c.Remote {
		a.clearText.Do(func() {
			c.Log.Warn("a password was sent over the network without TLS; others may be, this is logged once")
		})
	}
	return a.Broker.Accounts.Authenticate(ctx, name, password, c.Address)
}

func (a *authenticator) byCertificate(c *client, cert *x509.Certificate) (access.User, error) {
	name, ok := a.NameFrom.Name(cert)
	if !ok {
		return access.User{}, fmt.Errorf("the certificate %q has no name that could be a user name", access.Subject(cert))
	}
	return a.Broker.Accounts.Identify(name, c.Address)
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
func amqplain(response []byte, limits amqp.Limits) (user, password string, ok bool) {
	t, err := amqp.ParseTableEntries(response, limits)
	if err != nil {
		return "", "", false
	}
	user, okUser := t["LOGIN"].(string)
	password, okPassword := t["PASSWORD"].(string)
	return user, password, okUser && okPassword
}
