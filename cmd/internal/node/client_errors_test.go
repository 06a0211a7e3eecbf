package node

import (
	"cmp"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/server"
	"curfew/monitor/incident"
)

// often is what has happened n times, once in a number of seconds, the last time now.
func often(n, seconds int, now time.Time) (r deadline.Repeat) {
	for i := range n {
		r.Add(now.Add(-time.Duration((n-1-i)*seconds) * time.Second))
	}
	return r
}

// TestClientErrorsAreOneForEachCause: an application is one, however many of it there are, with what to do. Whoever fails now and then, or many times at once, is
// none.
func TestClientErrorsAreOneForEachCause(t *testing.T) {
	now := time.Now()
	err := func(client string, code uint16, text string) server.ClientError {
		return server.ClientError{Client: client, User: "app", VHost: "shop", Exception: *amqp.NewException(code, 0, 0, "%s", text)}
	}
	all := map[server.ClientError]deadline.Repeat{
		err("probe (user app, h)", amqp.NotFound, "no queue 'none' in vhost 'shop'"):                                    often(20, 61, now),
		err("starting (user app, h)", amqp.NotFound, "no queue 'none' in vhost 'shop'"):                                 often(20, 0, now),
		err("importer (user app, h)", amqp.AccessRefused, "access to queue 'q' in vhost 'shop' refused for user 'app'"): often(7, 3, now),
		err("importer (user app, h)", amqp.PreconditionFailed, "inequivalent arg 'durable'"):                            often(7, 3, now),
	}
	for i := range 3 {
		all[err("shop-worker-"+strconv.Itoa(i)+" (user app, h)", amqp.NotFound, "no queue 'orders.5' in vhost 'shop'")] = often(61+i, 1, now)
	}
	list := clientErrors(all, now)
	require.Len(t, list, 3)
	slices.SortFunc(list, func(a, b incident.Finding) int { return cmp.Compare(a.Cause, b.Cause) })
	require.Equal(t, "importer of the user app, access to queue 'q' in vhost 'shop' refused for user 'app'", list[0].Cause)
	require.Contains(t, list[0].Do, "`curfew user permissions list --vhost shop`")
	require.Empty(t, list[1].Do)
	require.Equal(t, "shop-worker of the user app, no queue 'orders.5' in vhost 'shop'", list[2].Cause)
	require.Equal(t, "shop-worker-0 (user app, h), 61 times in 1 min: no queue 'orders.5' in vhost 'shop'", list[2].Text)
	require.EqualValues(t, 3, list[2].Count)
	require.Equal(t, "Declare the queue, or correct the name that the client uses: `curfew declare queue orders.5 --vhost shop`", list[2].Do)
	require.Equal(t, "shop-worker", list[2].Left)
}

// TestUnrouted: a queue that was deleted, and is published to for over a minute since, until that ends or the queue is there again.
func TestUnrouted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := broker.New(broker.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		vh, _ := b.VHost("/")
		p := vh.OwnPublisher()
		publish := func(times int) {
			for range times {
				_, err = p.Add(&broker.Publication{Exchange: []byte("amq.direct"), RoutingKey: []byte("new"), Properties: new(amqp.Properties).Append(nil)})
				require.NoError(t, err)
				p.Flush(nil)
				time.Sleep(5 * time.Second)
			}
		}
		declare := func() {
			q, err := vh.Queues.Declare(nil, "orders", broker.QueueDeclare{Durable: true})
			require.NoError(t, err)
			q.NoteConsumed()
			require.NoError(t, vh.Bind(nil, broker.Binding{Source: "amq.direct", Destination: "orders", RoutingKey: "new"}))
		}
		declare()
		_, err = vh.Queues.Delete(nil, "orders", broker.QueueDeletion{})
		require.NoError(t, err)
		publish(12)
		require.Empty(t, unrouted(vh, time.Now()), "its publisher may stop")
		publish(12)
		list := unrouted(vh, time.Now())
		require.Len(t, list, 1)
		require.Equal(t, "it was deleted 2 min ago, and 24 messages to it by the exchange amq.direct and the key new since then reached no queue", list[0].Text)
		require.Equal(t, "Declare the queue as it was, or stop the publisher: `curfew declare queue orders --vhost / && curfew bind amq.direct orders --key new --vhost /`. `curfew history` says who deleted it.", list[0].Do)
		declare()
		publish(7)
		require.Empty(t, unrouted(vh, time.Now()))
	})
}
