package broker_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

func bodiesOf(found []broker.Browsed) (bodies []string) {
	for _, x := range found {
		bodies = append(bodies, string(x.Message.Body))
	}
	return bodies
}

func TestBrowseTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", amqp.Table{"x-max-priority": 3})
		for i := range 5 {
			x.publish("", "q", fmt.Sprint("m", i), "1000", amqp.Table{"n": int32(i)})
		}
		_, err := q.Messages.Get(false, func(*broker.Delivery) {})
		require.NoError(t, err)
		time.Sleep(time.Second)
		before := q.Info()

		for _, c := range []struct {
			broker.Browse
			want []string
		}{
			{broker.Browse{Count: 9, BodyBytes: -1}, []string{"m0", "m1", "m2", "m3", "m4"}},
			{broker.Browse{Count: 2, Offset: 1, State: queue.Ready, BodyBytes: -1}, []string{"m2", "m3"}},
			{broker.Browse{Count: 9, State: queue.Unacked, BodyBytes: 1}, []string{"m"}},
			{broker.Browse{Count: 2, Offset: 1, FromTail: true, BodyBytes: -1}, []string{"m3", "m2"}},
			{broker.Browse{Count: 9, Offset: 5, BodyBytes: -1}, nil},
			{broker.Browse{}, nil},
		} {
			found, err := q.Messages.Browse(c.Browse)
			require.NoError(t, err)
			assert.Equal(t, c.want, bodiesOf(found), "%+v", c.Browse)
		}
		found, err := q.Messages.Browse(broker.Browse{Count: 1, Offset: 1, BodyBytes: 1})
		require.NoError(t, err)
		one := found[0]
		assert.True(t, one.Expired, "it is past its deadline, and nobody met it")
		assert.Equal(t, x.b.Now(), one.Deadline)
		assert.Equal(t, 2, one.BodyBytes)
		assert.Equal(t, queue.Ready, one.State)
		p, err := one.Decode()
		require.NoError(t, err)
		assert.Equal(t, amqp.Table{"n": int32(1)}, p.Headers)

		next, err := q.Messages.Browse(broker.Browse{Count: 1, After: one.Seq, BodyBytes: -1})
		require.NoError(t, err)
		assert.Equal(t, []string{"m2"}, bodiesOf(next))
		next, err = q.Messages.Browse(broker.Browse{Count: 2, After: one.Seq, FromTail: true, BodyBytes: -1})
		require.NoError(t, err)
		assert.Equal(t, []string{"m0"}, bodiesOf(next))
		after := q.Info()
		assert.Equal(t, before, after, "nothing was marked, moved or counted")
	})
}

func TestBrowseGoesOnOverPages(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", nil)
	const n = 10_000
	for i := range n {
		x.publish("", "q", fmt.Sprint(i), "", nil)
	}
	for _, tail := range []bool{false, true} {
		found, err := q.Messages.Browse(broker.Browse{Count: n + 1, FromTail: tail, BodyBytes: -1})
		require.NoError(t, err)
		require.Len(t, found, n)
		far, err := q.Messages.Browse(broker.Browse{Count: 1, Offset: n - 1, FromTail: tail, BodyBytes: -1})
		require.NoError(t, err)
		assert.Equal(t, found[n-1].Seq, far[0].Seq)
		assert.Equal(t, n-1, far[0].Position)
	}
	_, err := x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	_, err = q.Messages.Browse(broker.Browse{Count: 1})
	assert.ErrorContains(t, err, "no queue 'q' in vhost '/'")
}

func TestCounts(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", nil)
	x.publish("", "q", "m1", "", nil)
	x.publish("", "q", "m2", "", nil)
	x.publish("", "nowhere", "m3", "", nil)
	x.publish("amq.fanout", "", "m4", "", nil)
	var held []queue.Seq
	take := func(noAck bool) {
		_, err := q.Messages.Get(noAck, func(d *broker.Delivery) { held = append(held, d.Seq) })
		require.NoError(t, err)
	}
	take(false)
	q.Messages.Settle(broker.Requeue, held, nil)
	held = held[:0]
	take(false)
	q.Messages.Settle(broker.Ack, append(held, held...), nil)
	take(true)
	take(true) // nothing left
	newSink(t, q, true)
	x.publish("", "q", "m5", "", nil)

	want := broker.QueueStats{Published: 3, MessageStats: broker.MessageStats{DeliveredNoAck: 1, Got: 2, GotNoAck: 1, GetEmpty: 1, Acked: 1, Redelivered: 1}}
	assert.Equal(t, want, q.Messages.State().Stats)
	def, err := x.vh.Exchanges.Get("")
	require.NoError(t, err)
	assert.Equal(t, [2]uint64{4, 3}, [2]uint64{def.PublishedIn, def.PublishedOut})
	fanout, err := x.vh.Exchanges.Get("amq.fanout")
	require.NoError(t, err)
	assert.Equal(t, [2]uint64{1, 0}, [2]uint64{fanout.PublishedIn, fanout.PublishedOut})

	_, err = x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	total := x.b.Stats()
	assert.Equal(t, want, total.Queues, "what a queue counted outlives it")
	assert.Equal(t, [3]uint64{1, 1, 1}, [3]uint64{total.QueuesDeclared, total.QueuesCreated, total.QueuesDeleted})
	assert.Equal(t, [4]uint64{5, 2, 5, 10}, [4]uint64{total.Published, total.Unroutable, total.Sizes[0], total.BodyBytes})
}

func TestExchangeCountsStartAgainWithTheExchange(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	declare := func() {
		require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout"}))
	}
	declare()
	x.publish("x", "", "m", "", nil)
	require.NoError(t, x.vh.Exchanges.Delete("x", false))
	declare()
	x.publish("x", "", "m", "", nil)
	i, err := x.vh.Exchanges.Get("x")
	require.NoError(t, err)
	assert.EqualValues(t, 1, i.PublishedIn)
}
