package node

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/cmd/internal/settings"
	"curfew/monitor/incident"
)

// slowSink is called under the lock of its queue.
type slowSink func()

func (f slowSink) Pull(*broker.Consumer, *broker.Source, int) (int, bool) {
	f()
	return 0, false
}

func (slowSink) Cancelled(*broker.Consumer) {}

func (slowSink) Lapsed(uint64, queue.Seq) bool { return true }

// slowConsumer adds a queue with a message and a consumer that takes none.
func slowConsumer(t *testing.T, b *broker.Broker, sink slowSink) *broker.Consumer {
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "slow", broker.QueueDeclare{})
	require.NoError(t, err)
	p, m := vh.OwnPublisher(), amqp.Properties{}
	_, err = p.Add(&broker.Publication{RoutingKey: []byte("slow"), Properties: m.Append(nil)})
	require.NoError(t, err)
	p.Flush(nil)
	c := &broker.Consumer{Tag: "c", Sink: sink}
	require.NoError(t, q.Messages.Consume(c))
	return c
}

// TestEventsFromSeveralGoroutines: two sinks and a test of them may publish at the same time.
func TestEventsFromSeveralGoroutines(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	x := &eventExchange{own: &ownBroker{broker: b}}
	require.NoError(t, x.open())
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "events", broker.QueueDeclare{})
	require.NoError(t, err)
	require.NoError(t, vh.Bind(nil, broker.Binding{Source: eventsExchange, Destination: "events", RoutingKey: "#"}))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				assert.NoError(t, x.publish(t.Context(), incident.Publication{RoutingKey: "begun", Body: []byte("{}")}))
			}
		})
	}
	all.Wait()
	ready, _, _ := q.Messages.Counts()
	require.Equal(t, 200, ready)
}

// TestIncidentsNameALockedQueue: what holds the lock of a queue for so long that clients feel it, and again, makes one notification that names both.
func TestIncidentsNameALockedQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, took atomic.Int64
		now.Store(int64(time.Hour))
		core, logs := observer.New(zap.WarnLevel)
		n := &Node{settings: &settings.Settings{}, metrics: prometheus.NewRegistry(), log: zap.New(core)}
		n.openHistory()
		require.NoError(t, n.openIncidents())
		b, err := broker.New(broker.Options{Clock: now.Load, OnLongHold: n.recordHold})
		require.NoError(t, err)
		defer func() { require.NoError(t, b.Close()) }()
		defer runInBackground(t.Context(), n.incidents.Run)()
		c := slowConsumer(t, b, func() { now.Add(took.Load()) })
		for _, each := range []time.Duration{9 * time.Millisecond, 25 * time.Millisecond, 250 * time.Millisecond} {
			require.Empty(t, logs.All())
			took.Store(each.Nanoseconds())
			for range 3 {
				c.Wake()
				time.Sleep(2 * time.Second)
			}
		}
		told := logs.FilterField(zap.String("event", "queue_locked_long")).All()
		require.Len(t, told, 1)
		require.Equal(t, zap.WarnLevel, told[0].Level)
		require.Regexp(t, `^A queue is locked for long: slow \(vhost /\): held for long [2-6] times; the longest, by the operation "deliver", took 250ms$`, told[0].Message)
	})
}
