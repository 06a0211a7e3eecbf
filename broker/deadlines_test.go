package broker_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// TestNothingExpiresWithTTLOff: whatever says that a message is to expire is checked, and not in force.
func TestNothingExpiresWithTTLOff(t *testing.T) {
	inBubble(t, broker.Options{TTLOff: true}, func(x *testBroker) {
		x.queue("dlq", nil)
		q := x.queue("q", amqp.Table{"x-message-ttl": 1000, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		plain := x.queue("plain", nil)
		policied := policy.Policy{Name: "p", Pattern: "plain", Definition: policy.Definition{"message-ttl": int64(0)}}
		_, done, err := x.vh.Policies.SetForBacklog(policy.User, policied)
		require.NoError(t, err)
		require.Zero(t, done)
		require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{"x-message-ttl": 10}}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "x", Destination: "q"}))
		x.publish("x", "", "by every way", "1", amqp.Table{"x-expires-at": time.Now().UnixMilli() + 1})
		x.publish("", "q", "zero", "0", nil)
		x.publish("", "plain", "policy", "", nil)
		x.publish("", "plain", "delayed", "1", amqp.Table{"x-delay": 50, "x-expires-at": time.Now().UnixMilli() + 60})
		_, err = x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{Expiration: "x"}).Append(nil)})
		require.EqualValues(t, 406, code(err), "a wrong one is refused all the same")
		time.Sleep(time.Hour)
		require.Empty(t, x.deadlines())
		m, ok := x.get(q, false)
		require.True(t, ok)
		require.Equal(t, "1", m.properties.Expiration)
		ref := deadline.Ref{Queue: q.ID, Seq: uint64(m.seq)}
		outcome, _ := x.b.Reschedule(ref, x.b.Now()+1)
		assert.Equal(t, deadline.Gone, outcome)
		assert.Equal(t, deadline.Gone, x.b.FireNow(ref, false))
		assert.Equal(t, []string{"zero"}, x.drain(q))
		assert.Equal(t, []string{"policy", "delayed"}, x.drain(plain))
	})
}

// TestTTLOffTakesDeadlinesOff: what was queued in a run without expiry does not expire later either.
func TestTTLOffTakesDeadlinesOff(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", amqp.Table{"x-message-ttl": 3_600_000})
	x.publishPersistent("", "q", "before", "")
	require.Len(t, x.deadlines(), 1)
	off := o
	off.TTLOff = true
	x = restarted(t, off, x.b)
	require.Empty(t, x.deadlines())
	x.publishPersistent("", "q", "during", "")
	x = restarted(t, o, x.b)
	require.Empty(t, x.deadlines())
	x.publishPersistent("", "q", "after", "")
	require.Len(t, x.deadlines(), 1)
	require.Equal(t, []string{"before", "during", "after"}, x.drain(x.called("q")))
	require.NoError(t, x.b.Close())
}

// TestDueAtTheStartWithoutMonitor: without ExpireOverdue, what came due while no process ran stays until a get or a delivery meets it, and is
// dead-lettered then, once, over further starts too.
func TestDueAtTheStartWithoutMonitor(t *testing.T) {
	var now atomic.Int64
	now.Store(1_900_000_000_000 * 1e6)
	o := broker.Options{Clock: now.Load, Store: store.Options{Dir: t.TempDir()}}
	open := func() *testBroker {
		b, err := broker.New(o)
		require.NoError(t, err)
		vh, _ := b.VHost("/")
		return &testBroker{t: t, b: b, vh: vh, p: vh.NewPublisher("guest")}
	}
	x := open()
	x.durable("dlq", nil)
	x.durable("q", deadLettersToDLQ)
	for _, m := range []struct{ body, expiration string }{{"head", "100"}, {"lives", "3600000"}, {"behind", "100"}, {"never", ""}} {
		x.publishPersistent("", "q", m.body, m.expiration)
	}
	require.NoError(t, x.b.Close())
	now.Add(int64(time.Minute))
	for range 2 {
		x = open()
		w := x.watched()
		ready, _, _ := x.called("q").Messages.Counts()
		require.Equal(t, 4, ready)
		require.Empty(t, w.take())
		require.NoError(t, x.b.Close())
	}
	x = open()
	w := x.watched()
	q, dlq := x.called("q"), x.called("dlq")
	m, ok := x.get(q, false)
	require.True(t, ok)
	require.Equal(t, "lives", m.body)
	d, ok := x.get(dlq, true)
	require.True(t, ok)
	require.Equal(t, "head", d.body)
	require.Equal(t, "100", d.properties.Headers["x-death"].([]any)[0].(amqp.Table)["original-expiration"])
	require.Equal(t, []string{"never"}, x.drain(q))
	require.Equal(t, []string{"behind"}, x.drain(dlq))
	told := w.take()
	require.Len(t, told, 2)
	require.Equal(t, deadline.Lazy, told[0].Path)
	require.Equal(t, 59_900*time.Millisecond, told[0].Lateness(), "late by what it is late")
	x.commit()
	require.NoError(t, x.b.Close())
	x = open()
	require.Equal(t, []string{"lives"}, x.drain(x.called("q")))
	require.Empty(t, x.drain(x.called("dlq")))
	require.NoError(t, x.b.Close())
}

// TestOverdueAtAStart: without a monitor, what came due while the process was down is dropped or dead-lettered at the start, wherever it is in its
// queue, and nothing else is.
func TestOverdueAtAStart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("dlq", nil)
	x.durable("plain", nil)
	x.durable("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	for range 300 { // more than are expired in one step
		x.publishPersistent("", "q", "long", "3600000")
		x.publishPersistent("", "q", "short", "1")
		x.publishPersistent("", "plain", "short", "1")
	}
	x.publishPersistent("", "plain", "none", "")
	due := x.b.Now().AddMillis(2)
	require.Eventually(t, func() bool { return x.b.Now() > due }, time.Minute, time.Millisecond)
	x = restarted(t, o, x.b)
	counts := func(name string) int {
		q, err := x.vh.Queues.Get(name)
		require.NoError(t, err)
		ready, _, _ := q.Messages.Counts()
		return ready
	}
	require.Equal(t, 600, x.b.Deadlines().ExpireOverdue())
	assert.Equal(t, 300, counts("q"))
	assert.Equal(t, 1, counts("plain"))
	require.Eventually(t, func() bool { return counts("dlq") == 300 }, time.Minute, time.Millisecond)
	assert.Zero(t, x.b.Deadlines().ExpireOverdue())
	require.NoError(t, x.b.Close())
}
