package broker_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/broker/store"
)

func TestConcurrentDurableDeclares(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openBench(t, o)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				name := fmt.Sprint(i%4, "-", j) // two declare the same
				_, err := x.vh.DeclareQueue(nil, name, broker.QueueDeclare{Durable: true})
				assert.NoError(t, err)
				assert.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "amq.direct", Destination: name, RoutingKey: name}))
			}
		})
	}
	all.Wait()
	x = restarted(t, o, x.b)
	for i := range 4 {
		for j := range 10 {
			name := fmt.Sprint(i, "-", j)
			x.publishPersistent("amq.direct", name, "m", "")
			q, err := x.vh.Queue(name)
			require.NoError(t, err)
			assert.Equal(t, []string{"m"}, x.drain(q))
		}
	}
	require.NoError(t, x.b.Close())
}

func TestRefusalsOfTwoFullQueuesAreInOrder(t *testing.T) {
	x := newBench(t, broker.Options{})
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

func TestWhatDiesParkedIsNotParkedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, broker.Options{})
		_, err := x.vh.DeclareQueue(nil, broker.UndeliverableQueue, broker.QueueDeclare{
			Durable: true, Args: amqp.Table{"x-message-ttl": int32(0), "x-dead-letter-exchange": "nowhere"},
		})
		assert.EqualValues(t, amqp.AccessRefused, code(err), "its properties are not a client's to choose")
		x.queue("q", amqp.Table{"x-message-ttl": int32(50), "x-dead-letter-exchange": "nowhere"})
		x.publish("", "q", "m", "", nil)
		time.Sleep(time.Second)
		told := x.watched()
		x.expire(x.deadlines())
		assert.Equal(t, deadline.Parked, told.take()[0].Action)
		park, err := x.vh.Queue(broker.UndeliverableQueue)
		require.NoError(t, err)
		assert.Equal(t, []string{"m"}, x.drain(park))
	})
}

func TestDeadLetterNamesHaveToFitTheWire(t *testing.T) {
	x := newBench(t, broker.Options{})
	long := strings.Repeat("k", 256)
	for _, args := range []amqp.Table{
		{"x-dead-letter-exchange": long}, {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": long},
	} {
		_, err := x.vh.DeclareQueue(nil, "q", broker.QueueDeclare{Args: args})
		assert.EqualValues(t, amqp.PreconditionFailed, code(err))
		assert.ErrorContains(t, err, "{too_long,256}")
	}
}

func TestDeadlineCountsFromEnteringTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t, broker.Options{})
		x.queue("q", deadLettersToDLQ)
		x.queue("dlq", amqp.Table{"x-message-ttl": int32(1000)})
		x.publish("", "q", "m", "10", nil)
		time.Sleep(5 * time.Second)
		x.expire(x.deadlines())
		assert.Equal(t, x.b.Now()+1_000_000, x.deadlines()[0].Deadline)
	})
}

func TestDeliveryLimit(t *testing.T) {
	x := newBench(t, broker.Options{})
	q := x.quorum("q", amqp.Table{"x-delivery-limit": int32(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	dlq := x.queue("dlq", nil)
	x.publish("", "q", "poison", "", nil)
	for range 2 {
		m, ok := x.get(q, false)
		require.True(t, ok)
		q.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
	}
	_, ok := x.get(q, true)
	assert.False(t, ok)
	m, ok := x.get(dlq, true)
	require.True(t, ok)
	assert.Equal(t, "delivery_limit", m.properties.Headers["x-first-death-reason"])
}

func TestRequeueRespectsMaxLength(t *testing.T) {
	x := newBench(t, broker.Options{})
	q := x.queue("q", amqp.Table{"x-max-length": int32(1)})
	x.publish("", "q", "0", "", nil)
	m, _ := x.get(q, false)
	x.publish("", "q", "1", "", nil)
	q.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
	ready, _, _ := q.Counts()
	assert.Equal(t, 1, ready)
}
