package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/server"
	"curfew/integration/testenv"
)

func TestUpdateSecret(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		require.NoError(t, c.UpdateSecret("another", "rotation"))
		x.channel(c)
	})
}

// TestARightPasswordGetsInAmongGuesses: the guesser has the same address as the user who
// knows the password, and any number of connections.
func TestARightPasswordGetsInAmongGuesses(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.user("u", ".*", ".*", ".*")
		wrong := amqp091.Config{SASL: []amqp091.Authentication{&amqp091.PlainAuth{Username: "u", Password: "wrong"}}}
		var stop atomic.Bool
		var guessers sync.WaitGroup
		for range 30 {
			guessers.Go(func() {
				for !stop.Load() {
					_, err := x.tryConnect(wrong)
					assert.Error(t, err)
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(time.Minute)
		for range 49 {
			start := time.Now()
			c, err := x.tryConnect(as("u"))
			require.NoError(t, err)
			assert.LessOrEqual(t, time.Since(start), time.Second)
			require.NoError(t, c.Close())
		}
		stop.Store(true)
		guessers.Wait()
	})
}

func TestTLS(t *testing.T) {
	ca, dir := testenv.NewAuthority(t), t.TempDir()
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "server"})
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	addUser(t, b, "CN=app,O=Example")
	require.NoError(t, b.Accounts.SetPermission(access.Permission{User: "CN=app,O=Example", VHost: "/"}))
	addr := secured(t, b, server.Options{}, withClientCertificates(ca, cert, key))
	dial := func(client *tls.Config, sasl amqp091.Authentication) (*amqp091.Connection, error) {
		return amqp091.DialConfig("amqps://"+addr, amqp091.Config{TLSClientConfig: client, SASL: []amqp091.Authentication{sasl}})
	}
	anonymous := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	password, external := &amqp091.PlainAuth{Username: "guest", Password: "guest"}, &amqp091.ExternalAuth{}

	c, err := dial(anonymous, password)
	require.NoError(t, err)
	ch, err := c.Channel()
	require.NoError(t, err)
	require.NoError(t, ch.ExchangeDeclarePassive("amq.direct", "direct", true, false, false, false, nil))
	require.NoError(t, c.Close())

	_, err = dial(anonymous, external)
	assert.ErrorIs(t, err, amqp091.ErrSASL, "without a certificate EXTERNAL is not offered")
	c, err = dial(ca.Client(t, pkix.Name{CommonName: "app", Organization: []string{"Example"}}), external)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = dial(ca.Client(t, pkix.Name{CommonName: "stranger"}), external)
	assertException(t, err, 403, "username or password not allowed")
	_, err = dial(testenv.NewAuthority(t).Client(t, pkix.Name{CommonName: "app"}), external)
	assert.Error(t, err, "the client does not trust the server")
}

func TestTLSReloadKeepsConnections(t *testing.T) {
	ca, dir := testenv.NewAuthority(t), t.TempDir()
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "first"})
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	addr := secured(t, b, server.Options{}, withClientCertificates(ca, cert, key))
	client := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	c, err := amqp091.DialConfig("amqps://guest:guest@"+addr, amqp091.Config{TLSClientConfig: client})
	require.NoError(t, err)
	ca.Write(t, dir, pkix.Name{CommonName: "second"})
	require.Eventually(t, func() bool {
		probe, err := tls.Dial("tcp", addr, client)
		require.NoError(t, err)
		defer probe.Close()
		return probe.ConnectionState().PeerCertificates[0].Subject.CommonName == "second"
	}, time.Minute, 50*time.Millisecond)
	ch, err := c.Channel()
	require.NoError(t, err, "what was open stays open")
	require.NoError(t, ch.ExchangeDeclarePassive("amq.direct", "direct", true, false, false, false, nil))
	require.NoError(t, c.Close())
}

func TestExternalNeedsACertificate(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		nc := x.greeted()
		nc.write(amqp.AppendMethod(nil, 0, &amqp.ConnectionStartOk{Mechanism: "EXTERNAL", Response: []byte("guest")}))
		nc.expect(amqp.ConnectionCloseID)
	})
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

// withClientCertificates asks clients for certificates, and reads its own again for each of them.
func withClientCertificates(ca *testenv.Authority, cert, key string) *tls.Config {
	return &tls.Config{ClientCAs: ca.Pool, ClientAuth: tls.VerifyClientCertIfGiven, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		c, err := tls.LoadX509KeyPair(cert, key)
		return &c, err
	}}
}

// secured serves a broker over TLS on a free port.
func secured(t *testing.T, b *broker.Broker, o server.Options, config *tls.Config) (addr string) {
	t.Helper()
	o.Broker = b
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := server.New(o)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, plain, tls.NewListener(l, config)) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		assert.NoError(t, b.Close())
	})
	return l.Addr().String()
}
