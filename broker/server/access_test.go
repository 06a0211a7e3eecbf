package server_test

import (
	"context"
	"crypto/tls"
	"net"
	"testing"
	"testing/synctest"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/certs"
	"curfew/broker/server"
)

// user creates a user with a password derived from the name, and the given permissions in
// "/".
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
		x.connect() // another user's connection goes on
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
