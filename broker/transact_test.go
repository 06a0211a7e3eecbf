package broker_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// TestTransactionIsFoundWholeOrNotAtAll: publishes to two queues and acks in two, more than
// an ordinary record holds, wherever the journal is torn.
func TestTransactionIsFoundWholeOrNotAtAll(t *testing.T) {
	const old, published = 1100, 1500
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	x.durable("other", nil)
	add := func(key string) {
		p := amqp.Properties{DeliveryMode: 2}
		routed, err := x.p.Add(&broker.Publication{RoutingKey: []byte(key), Properties: p.Append(nil), Body: []byte("body")})
		require.NoError(t, err)
		require.True(t, routed)
	}
	for range old {
		add("q")
		add("other")
	}
	x.p.Flush(nil)
	var settlings []broker.Settling
	for _, name := range []string{"q", "other"} {
		q, err := x.vh.Queues.Get(name)
		require.NoError(t, err)
		acks := broker.Settling{Queue: q, How: broker.Ack}
		for range old {
			_, err := q.Messages.Get(false, func(d *broker.Delivery) { acks.Seqs = append(acks.Seqs, d.Seq) })
			require.NoError(t, err)
		}
		settlings = append(settlings, acks)
	}
	x.commit()
	before := written(t, o.Store.Dir)
	for range published {
		add("q")
		add("other")
	}
	require.Empty(t, x.p.Transact(settlings, nil))
	x.commit()
	after := written(t, o.Store.Dir)
	assert.Equal(t, fmt.Sprint(published, published), x.depths("q", "other"))
	require.NoError(t, x.b.Close())

	log, seen := journalOf(t, after), map[string]int{}
	from, to := len(before[log]), len(after[log])
	for i := range 21 {
		dir := t.TempDir()
		for name, data := range after {
			if name == log {
				data = data[:from+(to-from)*i/20]
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
		}
		again := openTestBroker(t, broker.Options{Store: store.Options{Dir: dir}})
		seen[again.depths("q", "other")]++
		require.NoError(t, again.b.Close())
	}
	assert.Len(t, seen, 2, "%v", seen)
	assert.NotZero(t, seen[fmt.Sprint(old, old)])
	assert.NotZero(t, seen[fmt.Sprint(published, published)])
}

// TestTransactionSettlesAfterItPublished: what its publishes push out or is rejected goes
// where it goes without a transaction.
func TestTransactionSettlesAfterItPublished(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		dlq := x.queue("dlq", nil)
		q := x.queue("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq", "x-max-length": int32(2)})
		x.publish("", "q", "rejected", "", nil)
		m, ok := x.get(q, false)
		require.True(t, ok)
		for _, body := range []string{"pushed out", "1", "2"} {
			p := amqp.Properties{}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte(body)})
			require.NoError(t, err)
		}
		x.p.Transact([]broker.Settling{{Queue: q, How: broker.Reject, Seqs: []queue.Seq{m.seq}}}, nil)
		assert.Equal(t, []string{"1", "2"}, x.drain(q))
		assert.Equal(t, []string{"pushed out", "rejected"}, x.drain(dlq))
		x.p.Transact(nil, nil)
	})
}

// TestQueueIsReplacedBeforeTheCommit: the store keeps no message for a restart that was routed to a queue that is not durable.
func TestQueueIsReplacedBeforeTheCommit(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.queue("q", nil)
	x.durable("other", nil)
	p := amqp.Properties{DeliveryMode: 2}
	for range 20 {
		for _, key := range []string{"q", "other"} {
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte(key), Properties: p.Append(nil), Body: []byte("body")})
			require.NoError(t, err)
		}
	}
	_, err := x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	x.durable("q", nil)
	assert.Empty(t, x.p.Reroute())
	require.Empty(t, x.p.Transact(nil, nil))
	x.commit()
	assert.Equal(t, fmt.Sprint(20, 20), x.depths("q", "other"))
	require.NoError(t, x.b.Close())
	again := openTestBroker(t, o)
	assert.Equal(t, fmt.Sprint(0, 20), again.depths("q", "other"))
	require.NoError(t, again.b.Close())
}
