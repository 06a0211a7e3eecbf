package broker_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// publishPersistent publishes through the default exchange with delivery mode 2
// and waits until it is durable.
func (x *testBroker) publishPersistent(exchange, key, body, expiration string) {
	x.t.Helper()
	p := amqp.Properties{DeliveryMode: 2, Expiration: expiration}
	_, err := x.p.Add(&broker.Publication{Exchange: []byte(exchange), RoutingKey: []byte(key), Properties: p.Append(nil), Body: []byte(body)})
	require.NoError(x.t, err)
	x.p.Flush(nil)
	x.commit()
}

func (x *testBroker) commit() {
	x.t.Helper()
	done := make(chan error, 1)
	x.b.Commit(func(err error) { done <- err })
	require.NoError(x.t, <-done)
}

func (x *testBroker) durable(name string, args amqp.Table) *broker.Queue {
	x.t.Helper()
	q, err := x.vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true, Args: args})
	require.NoError(x.t, err)
	return q
}

// restarted closes the broker and opens another on its directory.
func restarted(t *testing.T, o broker.Options, b *broker.Broker) *testBroker {
	require.NoError(t, b.Close())
	return openTestBroker(t, o)
}

func openTestBroker(t *testing.T, o broker.Options) *testBroker {
	o.Clock = wallClock
	b, err := broker.New(o)
	require.NoError(t, err)
	vh, _ := b.VHost("/")
	return &testBroker{t: t, b: b, vh: vh, p: vh.NewPublisher("guest")}
}

func TestDurableThingsOutliveARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	require.NoError(t, x.vh.Exchanges.Declare("dlx", broker.ExchangeDeclare{Kind: "topic", Durable: true}))
	args := amqp.Table{"x-dead-letter-exchange": "dlx", "x-message-ttl": int64(3_600_000)}
	q := x.durable("q", args)
	x.durable("dlq", nil)
	x.queue("transient", nil)
	require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "dlx", Destination: "dlq", RoutingKey: "#"}))
	for _, body := range []string{"acked", "held", "kept", "rejected"} {
		x.publishPersistent("", "q", body, "")
	}
	x.publish("", "q", "transient", "", nil)
	x.publishPersistent("", "transient", "gone with its queue", "")
	before := x.deadlines()
	acked, _ := x.get(q, false)
	q.Messages.Settle(broker.Ack, []queue.Seq{acked.seq}, nil)
	x.get(q, false) // held
	kept, _ := x.get(q, false)
	rejected, _ := x.get(q, false)
	q.Messages.Settle(broker.Requeue, []queue.Seq{kept.seq}, nil)
	q.Messages.Settle(broker.Reject, []queue.Seq{rejected.seq}, nil)
	x.commit()

	x = restarted(t, o, x.b)
	_, err := x.vh.Queues.Get("transient")
	assert.EqualValues(t, amqp.NotFound, code(err))
	q, err = x.vh.Queues.Get("q")
	require.NoError(t, err)
	assert.Equal(t, before[1:3], x.deadlines(), "held and kept, under their old names and deadlines")
	require.NoError(t, declareAgain(x, "q", args), "arguments come back with their types")
	m, ok := x.get(q, false)
	require.True(t, ok)
	assert.Equal(t, "held", m.body)
	assert.True(t, m.redelivery)
	q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	dlq, err := x.vh.Queues.Get("dlq")
	require.NoError(t, err)
	assert.Equal(t, []string{"rejected", "held"}, x.drain(dlq), "the binding came back, the dead letter was not lost")
	require.NoError(t, x.b.Close())
}

func declareAgain(x *testBroker, name string, args amqp.Table) error {
	_, err := x.vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true, Args: args})
	return err
}

func TestDeadLetterKeepsItsHistoryOverARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	loop := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
	q := x.durable("q", loop)
	x.publishPersistent("", "q", "m", "")
	for range 2 {
		m, ok := x.get(q, false)
		require.True(t, ok)
		q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
		x.commit()
		x = restarted(t, o, x.b)
		var err error
		q, err = x.vh.Queues.Get("q")
		require.NoError(t, err)
	}
	m, ok := x.get(q, true)
	require.True(t, ok)
	assert.EqualValues(t, 2, m.properties.Headers["x-death"].([]any)[0].(amqp.Table)["count"])
	require.NoError(t, x.b.Close())
}

func TestDeletedQueueStaysDeleted(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	x.publishPersistent("", "q", "m", "")
	_, err := x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
	require.NoError(t, err)
	x = restarted(t, o, x.b)
	_, err = x.vh.Queues.Get("q")
	assert.EqualValues(t, amqp.NotFound, code(err))
	assert.Zero(t, x.b.Recovered())
	require.NoError(t, x.b.Close())
}

func TestMessagesWithoutDefinitionsAreNotDropped(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	x.publishPersistent("", "q", "m", "")
	require.NoError(t, x.b.Close())
	path := filepath.Join(o.Store.Dir, "definitions")
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	_, err = broker.New(o)
	assert.ErrorContains(t, err, "definitions")
	require.NoError(t, os.WriteFile(path, saved, 0o600))
	assert.Equal(t, 1, openAndClose(t, o))
}

// openAndClose returns how many messages were recovered.
func openAndClose(t *testing.T, o broker.Options) int {
	x := openTestBroker(t, o)
	defer func() { require.NoError(t, x.b.Close()) }()
	return x.b.Recovered()
}

// Nothing is saved during recovery: a crash would leave a part of it.
func TestDefinitionsAreNotTouchedByAStart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	for _, name := range []string{"a", "b", "c"} {
		x.durable(name, nil)
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.fanout", Destination: name}))
	}
	require.NoError(t, x.b.Close())
	path := filepath.Join(o.Store.Dir, "definitions")
	before, err := os.Stat(path)
	require.NoError(t, err)
	openAndClose(t, o)
	after, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "a save replaces the file")
}

// TestHeldWhenTheLastRunEnded: a message whose deadline came while the last run held it is not late after the restart, whatever notices it. One
// that nobody held is, and one whose deadline came while nothing ran.
func TestHeldWhenTheLastRunEnded(t *testing.T) {
	t.Parallel()
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	open := func() *testBroker {
		b, err := broker.New(o)
		require.NoError(t, err)
		vh, _ := b.VHost("/")
		return &testBroker{t: t, b: b, vh: vh, p: vh.NewPublisher("guest")}
	}
	x := open()
	x.durable("dead", nil)
	for _, name := range []string{"dropped", "dead-lettered"} {
		args := amqp.Table{}
		if name == "dead-lettered" {
			args["x-dead-letter-exchange"], args["x-dead-letter-routing-key"] = "", "dead"
		}
		q := x.durable(name, args)
		x.publishPersistent("", name, "held", "1000")
		held, err := q.Messages.Get(false, func(*broker.Delivery) {})
		require.NoError(t, err)
		require.True(t, held)
		x.publishPersistent("", name, "ready", "1000")
	}
	time.Sleep(1100 * time.Millisecond)
	for _, name := range []string{"dropped", "dead-lettered"} {
		x.publishPersistent("", name, "waits", "2000")
	}
	require.NoError(t, x.b.Close())
	time.Sleep(2100 * time.Millisecond) // the downtime

	x = open()
	defer func() { require.NoError(t, x.b.Close()) }()
	told := x.watched()
	x.expire(x.deadlines())
	counts := map[string]int{}
	for _, e := range told.take() {
		counts[e.Queue+" "+e.Path.String()]++
	}
	require.Equal(t, map[string]int{"dropped requeue": 1, "dropped eager": 2, "dead-lettered requeue": 1, "dead-lettered eager": 2}, counts)
}
