package broker_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// redelivered lists what is ready, a star at those marked redelivered, and leaves it
// there.
func (x *testBroker) redelivered(name string) (all []string) {
	q, err := x.vh.Queues.Get(name)
	require.NoError(x.t, err)
	for {
		m, ok := x.get(q, true)
		if !ok {
			return all
		}
		if m.redelivery {
			m.body += "*"
		}
		all = append(all, m.body)
	}
}

func TestRedeliveredAfterAStop(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	q := x.durable("q", amqp.Table{"x-max-priority": int32(2)})
	x.durable("untouched", nil)
	for i := range 6 {
		x.publishPersistent("", "q", fmt.Sprint(i), "")
	}
	x.publishPersistent("", "untouched", "m", "")
	var seqs []queue.Seq
	for range 4 {
		m, ok := x.get(q, false)
		require.True(t, ok)
		seqs = append(seqs, m.seq)
	}
	q.Messages.Settle(broker.Ack, seqs[1:2], nil)
	q.Messages.Settle(broker.Requeue, seqs[2:3], nil)
	urgent := amqp.Properties{DeliveryMode: 2, Priority: 2}
	_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: urgent.Append(nil), Body: []byte("urgent")})
	require.NoError(t, err)
	x.p.Flush(nil)

	for range 3 { // the marks are handed on from stop to stop
		x = restarted(t, o, x.b)
	}
	assert.Equal(t, []string{"urgent", "0*", "2*", "3*", "4", "5"}, x.redelivered("q"))
	assert.Equal(t, []string{"m"}, x.redelivered("untouched"))
	require.NoError(t, x.b.Close())
}

// Nothing tells then what was delivered, and a message without the mark must not have
// been.
func TestRedeliveredAfterACrash(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	q := x.durable("q", nil)
	for i := range 3 {
		x.publishPersistent("", "q", fmt.Sprint(i), "")
	}
	x.get(q, false)
	for range 2 {
		crashed := broker.Options{Store: store.Options{Dir: broker.CopyOfRunning(t, o.Store.Dir)}}
		y := openTestBroker(t, crashed)
		assert.Equal(t, []string{"0*", "1*", "2*"}, y.redelivered("q"))
		require.NoError(t, y.b.Close())
		x = restarted(t, o, x.b) // cleanly, but it is the crash after it that counts
	}
	require.NoError(t, x.b.Close())
}

// A rejected message that no target took was delivered once, and comes again.
func TestRetainedDeadLettersAreMarkedRedelivered(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	q := x.quorum("q", atLeastOnce("missing", nil))
	for range 6 {
		x.publishPersistent("", "q", "m", "")
	}
	for i := range 5 { // 1 stands between others that were delivered, 4 after them
		if m, _ := x.get(q, false); i == 1 || i == 4 {
			q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
		}
	}
	require.Equal(t, 2, q.Messages.Retained.Count())
	x = restarted(t, o, x.b)
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	for i := range 6 {
		m, ok := x.get(q, false)
		require.True(t, ok)
		assert.Equal(t, i < 5, m.redelivery, i)
	}
	require.NoError(t, x.b.Close())
}
