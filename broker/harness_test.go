package broker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// testBroker is a broker in a test, with one publisher.
type testBroker struct {
	t  *testing.T
	b  *broker.Broker
	vh *broker.VHost
	p  *broker.Publisher
}

// wallClock follows the bubble's clock in a synctest.
func wallClock() int64 { return time.Now().UnixNano() }

func newTestBroker(t *testing.T, o broker.Options) *testBroker {
	if o.Clock == nil {
		o.Clock = wallClock
	}
	b, err := broker.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	vh, ok := b.VHost("/")
	require.True(t, ok)
	return &testBroker{t: t, b: b, vh: vh, p: vh.NewPublisher("guest")}
}

func (x *testBroker) queue(name string, args amqp.Table) *broker.Queue {
	q, err := x.vh.Queues.Declare(nil, name, broker.QueueDeclare{Args: args})
	require.NoError(x.t, err)
	return q
}

// called is a queue that is there.
func (x *testBroker) called(name string) *broker.Queue {
	x.t.Helper()
	q, err := x.vh.Queues.Get(name)
	require.NoError(x.t, err)
	return q
}

func (x *testBroker) quorum(name string, args amqp.Table) *broker.Queue {
	args["x-queue-type"] = "quorum"
	q, err := x.vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true, Args: args})
	require.NoError(x.t, err)
	return q
}

// publish sends body to exchange with key; expiration "" is none.
func (x *testBroker) publish(exchange, key, body, expiration string, headers amqp.Table) {
	x.t.Helper()
	p := amqp.Properties{Expiration: expiration, Headers: headers}
	_, err := x.p.Add(&broker.Publication{
		Exchange: []byte(exchange), RoutingKey: []byte(key), Properties: p.Append(nil), Body: []byte(body),
	})
	require.NoError(x.t, err)
	x.p.Flush(nil)
}

// message is a delivery, copied out.
type message struct {
	seq        queue.Seq
	body       string
	exchange   string
	key        string
	redelivery bool
	properties amqp.Properties
}

func (x *testBroker) get(q *broker.Queue, noAck bool) (m message, ok bool) {
	ok, err := q.Messages.Get(noAck, func(d *broker.Delivery) { m = copied(x.t, d) })
	require.NoError(x.t, err)
	return m, ok
}

func copied(t testing.TB, d *broker.Delivery) message {
	p, err := amqp.ParseProperties(d.Message.Properties, amqp.Limits{})
	require.NoError(t, err)
	return message{
		seq: d.Seq, body: string(d.Message.Body), exchange: string(d.Message.Exchange),
		key: string(d.Message.RoutingKey), redelivery: d.Redelivered, properties: p,
	}
}

// drain gets all ready messages and settles them.
func (x *testBroker) drain(q *broker.Queue) (bodies []string) {
	for {
		m, ok := x.get(q, true)
		if !ok {
			return bodies
		}
		bodies = append(bodies, m.body)
	}
}

// deadlines lists what the broker would tell a monitor that starts now.
func (x *testBroker) deadlines() (refs []deadline.Ref) {
	require.NoError(x.t, x.b.Deadlines().Snapshot(context.Background(), func(page []deadline.Ref) error {
		refs = append(refs, page...)
		return nil
	}))
	return refs
}

// expire has the deadlines of messages fire and waits for their dead letters.
func (x *testBroker) expire(refs []deadline.Ref) []deadline.Answer {
	results := x.b.Deadlines().Expire(refs, deadline.Eager, true, nil)
	require.NoError(x.t, x.b.Forwarded(context.Background()))
	return results
}

// watched collects the expiries that the broker reports from now on.
func (x *testBroker) watched() *watched {
	w := &watched{}
	x.b.Deadlines().Expiries().Subscribe(deadline.Basic, func(batch []deadline.Expiry) {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, e := range batch {
			e.MessageID, e.Exchange, e.RoutingKey, e.To = nil, "", nil, nil
			w.told = append(w.told, e)
		}
	})
	return w
}

type watched struct {
	mu   sync.Mutex
	told []deadline.Expiry
}

// take returns what was reported since the last call.
func (w *watched) take() (told []deadline.Expiry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	told, w.told = w.told, nil
	return told
}

func code(err error) uint16 {
	var e *amqp.Exception
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// text is what an exception says on the wire.
func text(err error) string {
	var e *amqp.Exception
	if errors.As(err, &e) {
		return e.Text
	}
	return fmt.Sprint(err)
}

var deadLettersToDLQ = amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"}
