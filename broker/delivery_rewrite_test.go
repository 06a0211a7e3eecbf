package broker_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// TestRewrite: a message gets other properties in its place, in its queue alone, and has them after a restart.
func TestRewrite(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	require.NoError(t, x.vh.Exchanges.Declare("fan", broker.ExchangeDeclare{Kind: "fanout"}))
	q, other := x.durable("q", amqp.Table{"x-delivery-deadline": true, "x-max-delivery-count": int64(9)}), x.queue("other", nil)
	for _, name := range []string{"q", "other"} {
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "fan", Destination: name}))
	}
	x.publishPersistent("fan", "", "first", "3600000")
	x.publishPersistent("fan", "", "second", "3600000")
	before := slices.DeleteFunc(x.deadlines(), func(r deadline.Ref) bool { return r.Queue != q.ID })
	m, _ := x.get(q, false)
	shown, _ := q.Messages.BrowseOne(m.seq, 0)
	rewrite := func() {
		require.NoError(t, q.Messages.Rewrite(m.seq, func(properties, body []byte) []byte {
			assert.Equal(t, "first", string(body))
			p, err := broker.ParseStored(properties)
			require.NoError(t, err)
			p.AppID += "!"
			return p.Append(nil)
		}))
	}
	rewrite()
	q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
	rewrite() // a ready one, too
	require.NoError(t, q.Messages.Rewrite(m.seq, func([]byte, []byte) []byte { return nil }))
	untouched, _ := x.get(other, true)
	assert.Empty(t, untouched.properties.AppID)
	x.commit()

	x = restarted(t, o, x.b)
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	assert.ElementsMatch(t, before, x.deadlines())
	again, _ := q.Messages.BrowseOne(m.seq, 0)
	assert.Equal(t, shown.EnqueuedAt, again.EnqueuedAt)
	assert.Equal(t, uint16(1), again.Failed)
	m, _ = x.get(q, true)
	assert.Equal(t, "first", m.body)
	assert.Equal(t, "!!", m.properties.AppID)
	assert.Equal(t, []string{"second"}, x.drain(q))
	require.NoError(t, q.Messages.Rewrite(m.seq, func([]byte, []byte) []byte { panic("it is gone") }))
	require.NoError(t, x.b.Close())
}
