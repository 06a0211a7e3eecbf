package server_test

import (
	"testing"
	"testing/synctest"

	"github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/server"
)

func TestListShowsWhatClientsDo(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		assert.Empty(t, x.s.List())
		c := x.connect()
		ch := x.channel(c)
		require.NoError(t, ch.Confirm(false))
		require.NoError(t, ch.Qos(7, 0, false))
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "m1", "m2")
		require.NoError(t, ch.Publish("", "nowhere", true, false, amqp091.Publishing{}))
		x.publish(ch, "nowhere", "m")
		d, ok, err := ch.Get("q", false)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, d.Ack(false))
		deliveries, err := ch.Consume("q", "tag", false, true, false, false, amqp091.Table{"k": "v"})
		require.NoError(t, err)
		require.Len(t, x.settled(deliveries), 1)
		_, ok, err = ch.Get("amq.none", false)
		require.Error(t, err)
		require.False(t, ok)
		ch = x.channel(c)
		synctest.Wait()

		all := x.s.List()
		require.Len(t, all, 1)
		i := all[0]
		assert.Equal(t, [3]string{"guest", "/", "PLAIN"}, [3]string{i.User, i.VHost, i.Mechanism})
		assert.Equal(t, "AMQP 0.9.1 Client", i.ClientProperties["product"])
		assert.Positive(t, i.Received)
		assert.Positive(t, i.Sent)
		require.Len(t, i.Channels, 1, "the first was closed by its error")
		assert.NotNil(t, ch)
		totals := &x.s.Totals
		assert.Equal(t, [4]uint64{4, 4, 4, 1}, [4]uint64{totals.Received.Load(), totals.ReceivedConfirm.Load(), totals.Confirmed.Load(), totals.Returned.Load()})
		assert.Equal(t, [5]uint64{1, 1, 0, 2, 1}, [5]uint64{totals.Dropped.Load(), totals.ConnectionsOpened.Load(), totals.ConnectionsClosed.Load(), totals.ChannelsOpened.Load(), totals.ChannelsClosed.Load()})
	})
}

func TestChannelCounts(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		require.NoError(t, ch.Confirm(false))
		require.NoError(t, ch.Qos(7, 0, false))
		x.queue(ch, "q", nil)
		x.publish(ch, "q", "m1", "m2", "m3")
		d, _, err := ch.Get("q", false)
		require.NoError(t, err)
		require.NoError(t, d.Nack(false, true))
		deliveries, err := ch.Consume("q", "tag", false, true, false, false, amqp091.Table{"k": "v"})
		require.NoError(t, err)
		got := x.settled(deliveries)
		require.Len(t, got, 3)
		require.NoError(t, got[1].Ack(true))
		synctest.Wait()

		i := x.s.List()[0].Channels[0]
		assert.Equal(t, server.ChannelStats{Published: 3, Confirmed: 3, MessageStats: broker.MessageStats{Got: 1, Delivered: 3, Redelivered: 1, Acked: 2}}, i.Stats)
		assert.True(t, i.Confirm)
		assert.Equal(t, [3]int{7, 1, 0}, [3]int{i.Prefetch, i.Unacked, int(i.Unconfirmed)})
		require.Len(t, i.Consumers, 1)
		c := i.Consumers[0]
		assert.Equal(t, "tag", c.Tag)
		assert.Equal(t, "q", c.Queue.Name)
		assert.True(t, c.Exclusive)
		assert.Equal(t, "v", c.Arguments["k"])
	})
}

func TestCloseConnections(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c, other := x.connect(), x.connect()
		closed, otherClosed := c.NotifyClose(make(chan *amqp091.Error, 1)), other.NotifyClose(make(chan *amqp091.Error, 1))
		x.queue(x.channel(other), "q", nil)
		first := true
		assert.Equal(t, 1, x.s.CloseConnections("enough", func(_, user, _ string) bool {
			assert.Equal(t, "guest", user)
			was := first
			first = false
			return was
		}))
		synctest.Wait()
		reason := closed
		if !c.IsClosed() { // the other one was closed first
			reason = otherClosed
		}
		assert.Equal(t, "CONNECTION_FORCED - enough", (<-reason).Reason)
		assert.Len(t, x.s.List(), 1)
	})
}

func TestCloseConnectionsThatAreBlocked(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		c := x.connect()
		ch := x.channel(c)
		x.setAlarm(true)
		x.publish(ch, "q", "m")
		synctest.Wait()
		require.True(t, x.s.List()[0].Blocked)
		x.s.CloseConnections("enough", func(string, string, string) bool { return true })
		synctest.Wait()
		assert.True(t, c.IsClosed())
		assert.Empty(t, x.s.List())
	})
}

func TestTransactionsCountWhatIsCommitted(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		ch := x.channel(x.connect())
		x.queue(ch, "q", nil)
		require.NoError(t, ch.Tx())
		x.publish(ch, "q", "m1")
		require.NoError(t, ch.TxRollback())
		x.publish(ch, "q", "m2", "m3")
		x.publish(ch, "nowhere", "m4")
		require.NoError(t, ch.TxCommit())
		d, _, err := ch.Get("q", false)
		require.NoError(t, err)
		require.NoError(t, d.Ack(false))
		require.NoError(t, ch.TxCommit())
		i := x.s.List()[0].Channels[0]
		assert.True(t, i.Transactional)
		assert.Equal(t, server.ChannelStats{Published: 3, Dropped: 1, MessageStats: broker.MessageStats{Got: 1, Acked: 1}}, i.Stats)
		assert.EqualValues(t, 3, x.b.Stats().Published)
	})
}

func TestDeletedUserAndVHostEndConnections(t *testing.T) {
	run(t, server.Options{}, func(x *site) {
		x.user("u", ".*", ".*", ".*")
		_, _, err := x.b.PutVHost("", "v", broker.VHostMetadata{})
		require.NoError(t, err)
		require.NoError(t, x.b.Accounts.SetPermission(access.Permission{User: "guest", VHost: "v"}))
		for text, end := range map[string]func() error{
			"CONNECTION_FORCED - user 'u' is deleted":  func() error { return x.b.Accounts.DeleteUser("u") },
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
