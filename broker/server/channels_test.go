package server_test

import (
	"testing"
	"testing/synctest"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/broker/access"
	"curfew/broker/server"
)

func TestChannelLimitOfAUser(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		require.NoError(t, x.b.Accounts.SetUserLimits("guest", access.Limits{access.MaxChannels: 1}))
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
