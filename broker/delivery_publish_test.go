package broker_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// A quorum queue keeps messages whatever their delivery mode, also those that come as
// dead letters; a classic queue beside it does not.
func TestQuorumQueueKeepsTransientMessages(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.quorum("quorum", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "classic"})
	classic := x.durable("classic", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "quorum"})
	for _, name := range []string{"quorum", "classic"} {
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
	}
	x.publish("", "quorum", "published", "", nil)
	x.publish("amq.fanout", "", "to both", "", nil)
	x.publish("", "classic", "dead letter", "", nil)
	_, ok := x.get(classic, false)
	require.True(t, ok)
	m, ok := x.get(classic, false)
	require.True(t, ok)
	classic.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	x.commit()
	for range 2 {
		x = restarted(t, o, x.b)
	}
	q, err := x.vh.Queues.Get("quorum")
	require.NoError(t, err)
	assert.Equal(t, 3, x.ready(q))
	first, ok := x.get(q, false)
	require.True(t, ok)
	q.Messages.Settle(broker.Reject, []queue.Seq{first.seq}, nil)
	x.commit()
	x = restarted(t, o, x.b)
	classic, err = x.vh.Queues.Get("classic")
	require.NoError(t, err)
	assert.Empty(t, x.drain(classic), "where it is a classic queue's again, it is transient")
	q, err = x.vh.Queues.Get("quorum")
	require.NoError(t, err)
	assert.Equal(t, []string{"to both", "dead letter"}, x.drain(q))
	require.NoError(t, x.b.Close())
}

func TestRefusalsOfTwoFullQueuesAreInOrder(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	full := amqp.Table{"x-max-length": int32(0), "x-overflow": "reject-publish"}
	x.queue("a", full)
	x.queue("b", full)
	x.queue("open", nil)
	for _, key := range []string{"a", "b", "a", "open", "b"} {
		p := amqp.Properties{Headers: amqp.Table{"CC": []any{"b"}}}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte(key), Properties: p.Append(nil)})
		require.NoError(t, err)
	}
	assert.Equal(t, []int{0, 1, 2, 3, 4}, x.p.Flush(nil), "each once, though two refused it")
}
