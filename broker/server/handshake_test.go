package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"io"
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
	anonymous := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	password, external := &amqp091.PlainAuth{Username: "guest", Password: "guest"}, &amqp091.ExternalAuth{}
	for _, addr := range secured(t, b, withClientCertificates(ca, cert, key)) {
		dial := func(client *tls.Config, sasl amqp091.Authentication) (*amqp091.Connection, error) {
			return amqp091.DialConfig("amqps://"+addr, amqp091.Config{TLSClientConfig: client, SASL: []amqp091.Authentication{sasl}})
		}
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
}

// TestSlowTLS: a client that begins with TLS has no more time for its first octets than any other, however it spends it.
func TestSlowTLS(t *testing.T) {
	run(t, server.Options{TLS: &tls.Config{}}, func(x *site) {
		nc, began := x.l.dial(), time.Now()
		var client sync.WaitGroup
		client.Go(func() {
			for _, b := range append([]byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), make([]byte, 500)...) {
				time.Sleep(time.Second)
				if _, err := nc.Write([]byte{b}); err != nil {
					return
				}
			}
		})
		_, err := nc.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.EOF)
		assert.Equal(t, 10*time.Second, time.Since(began))
		client.Wait()
	})
}

// TestHandOver: a connection for HTTP is read from its first octet on, has no deadline of the handshake, and is not one of AMQP.
func TestHandOver(t *testing.T) {
	given := make(chan net.Conn, 2)
	const request = "OPTIONS / HTTP/1.1\r\n\r\n"
	run(t, server.Options{HTTP: func(nc net.Conn) { given <- nc }, MaxConnections: 1, MaxHandshakes: 1}, func(x *site) {
		for range 2 {
			client := x.l.dial()
			defer client.Close()
			go func() {
				for _, b := range []byte(request) {
					time.Sleep(time.Second)
					client.Write([]byte{b})
				}
			}()
			time.Sleep(time.Minute)
		}
		require.NoError(t, x.connect().Close())
		for range 2 {
			nc := <-given
			got := make([]byte, len(request))
			_, err := io.ReadFull(nc, got)
			require.NoError(t, err)
			assert.Equal(t, request, string(got))
		}
	})
}

func TestTLSReloadKeepsConnections(t *testing.T) {
	ca, dir := testenv.NewAuthority(t), t.TempDir()
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "first"})
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	addr := secured(t, b, withClientCertificates(ca, cert, key))[0]
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

// secured serves a broker on two ports: one for TLS alone, and one for TLS, too.
func secured(t *testing.T, b *broker.Broker, config *tls.Config) (addrs [2]string) {
	t.Helper()
	var listeners [len(addrs)]net.Listener
	for i := range addrs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners[i], addrs[i] = l, l.Addr().String()
	}
	listeners[0] = tls.NewListener(listeners[0], config)
	s := server.New(server.Options{Broker: b, TLS: config})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, listeners[:]...) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		assert.NoError(t, b.Close())
	})
	return addrs
}
