package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/certs"
	"curfew/broker/certs/certstest"
	"curfew/broker/server"
)

// user makes a user with a password like his name and what he may do in "/".
func (x *site) user(name, configure, write, read string) {
	x.t.Helper()
	addUser(x.t, x.b, name)
	require.NoError(x.t, x.b.SetPermission(access.Permission{User: name, VHost: "/", Configure: configure, Write: write, Read: read}))
}

func addUser(t *testing.T, b *broker.Broker, name string) {
	t.Helper()
	u := access.User{Name: name}
	u.SetPassword(name)
	require.NoError(t, b.PutUser(u))
}

func as(name string) amqp091.Config {
	return amqp091.Config{SASL: []amqp091.Authentication{&amqp091.PlainAuth{Username: name, Password: name}}}
}

func TestDeletedUserAndVHostEndConnections(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.user("u", ".*", ".*", ".*")
		_, _, err := x.b.PutVHost("v", broker.VHostMetadata{})
		require.NoError(t, err)
		require.NoError(t, x.b.SetPermission(access.Permission{User: "guest", VHost: "v"}))
		for text, end := range map[string]func() error{
			"CONNECTION_FORCED - user 'u' is deleted":  func() error { return x.b.DeleteUser("u") },
			"CONNECTION_FORCED - vhost 'v' is deleted": func() error { return x.b.DeleteVHost("v") },
		} {
			cfg := as("u")
			if text == "CONNECTION_FORCED - vhost 'v' is deleted" {
				cfg = as("guest")
				cfg.Vhost = "v"
			}
			c, err := x.tryConnect(cfg)
			require.NoError(t, err)
			closed := c.NotifyClose(make(chan *amqp091.Error, 1))
			require.NoError(t, end())
			assertException(t, <-closed, 320, text)
		}
		x.connect() // another's goes on
	})
}

func TestForcedCloseNeedsNoAnswer(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		deaf := x.raw()
		deaf.send(&amqp.QueueDeclare{Queue: "q", Exclusive: true})
		deaf.expect(amqp.QueueDeclareOkID)
		require.NoError(t, x.b.DeleteUser("guest"))
		deaf.expect(amqp.ConnectionCloseID)
		synctest.Wait()
		vh, _ := x.b.VHost("/")
		_, err := vh.Queue("q")
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
		x.closeGate(true)
		x.publish(ch, "q", "held back")
		synctest.Wait()
		require.NoError(t, x.b.DeleteUser("u"))
		assertException(t, <-closed, 320, "CONNECTION_FORCED - user 'u' is deleted")
		x.closeGate(false)
	})
}

func TestChannelLimitOfAUser(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		require.NoError(t, x.b.SetUserLimits("guest", access.Limits{access.MaxChannels: 1}))
		c := x.connect()
		require.NoError(t, x.channel(c).Close())
		x.channel(c)
		closed := c.NotifyClose(make(chan *amqp091.Error, 1))
		_, err := c.Channel()
		require.Error(t, err)
		assertException(t, <-closed, 530, "NOT_ALLOWED - number of channels opened for user 'guest' has reached the maximum allowed user limit of (1)")
		synctest.Wait()
		x.channel(x.connect())
	})
}

func TestPermissionsOfAnOpenChannelChange(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.user("u", "^q", "^(amq\\.default|q)$", "^q")
		c, err := x.tryConnect(as("u"))
		require.NoError(t, err)
		ch := x.channel(c)
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "one", "two")
		_, ok, err := ch.Get("q", true)
		require.NoError(t, err)
		assert.True(t, ok)
		require.NoError(t, x.b.SetPermission(access.Permission{User: "u", VHost: "/", Configure: "^q", Write: "^q", Read: ""}))
		_, _, err = ch.Get("q", true)
		assertException(t, err, 403, "ACCESS_REFUSED - access to queue 'q' in vhost '/' refused for user 'u'")
		ch = x.channel(c)
		closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
		x.publish(ch, "q", "three")
		assertException(t, <-closed, 403, "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'u'")
		_, err = x.channel(c).QueueDeclarePassive("q", false, false, false, false, nil)
		assert.NoError(t, err, "any permission will do")
		_, err = x.channel(c).QueueDeclarePassive("other", false, false, false, false, nil)
		assertException(t, err, 403, "ACCESS_REFUSED - access to queue 'other' in vhost '/' refused for user 'u'")
	})
}

func TestUpdateSecret(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		require.NoError(t, c.UpdateSecret("another", "rotation"))
		x.channel(c)
	})
}

// TestDawdlersKeepNobodyOut: connections that say nothing fill the limit; who
// comes later is let in once the oldest have had their time.
func TestDawdlersKeepNobodyOut(t *testing.T) {
	run(t, server.Options{MaxHandshakes: 3}, func(x *site) {
		dawdlers := []net.Conn{x.l.dial(), x.l.dial(), x.l.dial()}
		_, err := x.tryConnect(amqp091.Config{})
		require.Error(t, err, "they may still be coming")
		time.Sleep(3 * time.Second)
		x.connect()
		gone := 0
		for _, nc := range dawdlers {
			nc.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := nc.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
				gone++
			}
		}
		assert.Equal(t, 1, gone)
		for range 5 {
			x.connect() // open connections do not count
		}
	})
}

// TestARightPasswordGetsInAmongGuesses: who guesses has the address of who knows, and as
// many connections as it likes.
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

// secured serves a broker over TLS on a free port.
func secured(t *testing.T, b *broker.Broker, o server.Options, files *certs.Files) (addr string) {
	t.Helper()
	o.Broker = b
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := server.New(o)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- s.Serve(ctx, plain, tls.NewListener(l, files.Config())) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
		assert.NoError(t, b.Close())
	})
	return l.Addr().String()
}

func TestTLS(t *testing.T) {
	ca, dir := certstest.New(t), t.TempDir()
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "server"})
	files, err := certs.Open(certs.Options{Cert: cert, Key: key, ClientCA: ca.CA, ClientAuth: certs.Request})
	require.NoError(t, err)
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	addUser(t, b, "CN=app,O=Example")
	require.NoError(t, b.SetPermission(access.Permission{User: "CN=app,O=Example", VHost: "/"}))
	addr := secured(t, b, server.Options{}, files)
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
	_, err = dial(certstest.New(t).Client(t, pkix.Name{CommonName: "app"}), external)
	assert.Error(t, err, "the client does not trust the server")
}

func TestTLSReloadKeepsConnections(t *testing.T) {
	ca, dir := certstest.New(t), t.TempDir()
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "first"})
	files, err := certs.Open(certs.Options{Cert: cert, Key: key})
	require.NoError(t, err)
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	addr := secured(t, b, server.Options{}, files)
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
