package server_test

import (
	"testing"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
	"curfew/broker/server"
)

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
		require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "u", VHost: "/", Configure: "^q", Write: "^q", Read: ""}))
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
