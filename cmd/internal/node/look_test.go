package node

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
	"curfew/cmd/internal/settings"
	"curfew/integration/testenv"
	"curfew/monitor/history"
	"curfew/monitor/incident"
)

// ceilings are a broker with 10,000 queues, and a state in which half of them are at risk. The dead letters of these lead to the others, by
// an exchange with 200,000 bindings: of each type in turn, and every second time with a key of their own.
func ceilings(tb testing.TB, queues, bindings int) (*broker.Broker, *incident.State) {
	b, err := broker.New(broker.Options{})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, b.Close()) })
	vh, _ := b.VHost("/")
	kinds := []string{"direct", "topic", "fanout"}
	for i, kind := range kinds {
		require.NoError(tb, vh.Exchanges.Declare("dlx "+kind, broker.ExchangeDeclare{Kind: kind}))
		for n := range bindings {
			if n%len(kinds) == i {
				target := fmt.Sprintf("target %d", n/len(kinds)%(queues/2))
				if n < queues/2*len(kinds) && i == 0 {
					_, err := vh.Queues.Declare(nil, target, broker.QueueDeclare{})
					require.NoError(tb, err)
				}
				require.NoError(tb, vh.Bind(nil, broker.Binding{Source: "dlx " + kind, Destination: target, RoutingKey: fmt.Sprintf("key %d", n)}))
			}
		}
	}
	s := &incident.State{}
	for n := range queues / 2 {
		args := amqp.Table{"x-dead-letter-exchange": "dlx " + kinds[n%len(kinds)], "x-message-ttl": int64(1000)}
		if n%2 == 0 {
			args["x-dead-letter-routing-key"] = fmt.Sprintf("key %d", n)
		}
		name := fmt.Sprintf("work %d", n)
		_, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{Args: args})
		require.NoError(tb, err)
		s.Forecasts = append(s.Forecasts, deadline.Forecast{VHost: "/", Queue: name, AtRisk: 10, NearlyDue: true})
	}
	return b, s
}

// TestBlockedByWhat: how much is free where, which setting says what is too little, and which queue has most.
func TestBlockedByWhat(t *testing.T) {
	dir, free := t.TempDir(), atomic.Int64{}
	free.Store(1 << 30)
	b, err := broker.New(broker.Options{
		Store: store.Options{Dir: dir}, DiskFreeLimit: 50 << 20, DiskSpace: func(string) (int64, int64, error) { return free.Load(), 2 << 30, nil },
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	vh, _ := b.VHost("/")
	p := vh.OwnPublisher()
	for name, bytes := range map[string]int{"small": 10, "large": 2048} {
		_, err = vh.Queues.Declare(nil, name, broker.QueueDeclare{})
		require.NoError(t, err)
		_, err = p.Add(&broker.Publication{RoutingKey: []byte(name), Properties: new(amqp.Properties).Append(nil), Body: make([]byte, bytes)})
		require.NoError(t, err)
	}
	p.Flush(nil)
	require.Empty(t, blocked(b, dir))
	free.Store(12 << 20)
	want := "low on disk; 12 MiB are free in " + dir + ", and publishers wait below 50 MiB (CURFEW_DISK_FREE_LIMIT); the queue large (vhost /) has 2.0 KiB, more than any other"
	require.Eventually(t, func() bool { return blocked(b, dir) == want }, 10*time.Second, 20*time.Millisecond, blocked(b, dir))
}

// TestLookAtTheCeilings: a look takes less than 50 ms of a processor.
func TestLookAtTheCeilings(t *testing.T) {
	b, s := ceilings(t, 10_000, 200_000)
	l := &looker{}
	testenv.Quick(t, 50*time.Millisecond, "a look", func() {
		s.Purposes = l.purposes(b, s)
		incident.Evaluate(s)
	})
}

// TestPurposesAtTheCeilings: what a queue is for follows from where its dead letters lead, however many bindings lead there.
func TestPurposesAtTheCeilings(t *testing.T) {
	b, s := ceilings(t, 10_000, 200_000)
	l := &looker{}
	s.Purposes = l.purposes(b, s)
	require.Equal(t, deadline.DeadLetters, purposeAt(t, l, b, "target 1"))

	vh, _ := b.VHost("/")
	target, err := vh.Queues.Get("target 1")
	require.NoError(t, err)
	work := incident.QueueName{VHost: "/", Name: "work 1"} // of the topic exchange
	require.Equal(t, deadline.Work, s.Purposes[work])
	target.NoteConsumed()
	require.Equal(t, deadline.Retry, l.purposes(b, s)[work], "somebody consumes where its dead letters lead")
}

// TestPurposeOfADeletedQueue: it stays what it was, and one that nobody has looked at was for a reply, and no loss.
func TestPurposeOfADeletedQueue(t *testing.T) {
	b, s := ceilings(t, 2, 1)
	vh, _ := b.VHost("/")
	l, work := &looker{}, incident.QueueName{VHost: "/", Name: s.Forecasts[0].Queue}
	brief := incident.QueueName{VHost: "/", Name: "brief"}
	other := incident.QueueName{VHost: "_other", Name: "_other"}
	for _, q := range []incident.QueueName{brief, other} {
		s.Tallies = append(s.Tallies, incident.Tally{Event: incident.Event{Kind: incident.Expired, VHost: q.VHost, Queue: q.Name}})
	}
	require.Equal(t, deadline.Work, l.purposes(b, s)[work])
	_, err := vh.Queues.Delete(nil, work.Name, broker.QueueDeletion{})
	require.NoError(t, err)
	of := l.purposes(b, s)
	require.Equal(t, deadline.Work, of[work])
	require.Equal(t, deadline.Reply, of[brief])
	require.Equal(t, deadline.Work, of[other], "what found no room may be anything")
}

// TestPurposeWithoutItsVirtualHost: a queue that is deleted with its virtual host stays what it was, too.
func TestPurposeWithoutItsVirtualHost(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	o := &ownBroker{broker: b, n: &Node{}}
	vh, _, err := b.PutVHost("", "v", broker.VHostMetadata{})
	require.NoError(t, err)
	_, err = vh.Queues.Declare(nil, "metrics", broker.QueueDeclare{Args: amqp.Table{"x-curfew-purpose": "telemetry"}})
	require.NoError(t, err)
	metrics, s := incident.QueueName{VHost: "v", Name: "metrics"}, &incident.State{}
	s.Tallies = []incident.Tally{{Event: incident.Event{Kind: incident.Expired, VHost: "v", Queue: "metrics"}}}
	for range 3 {
		require.Equal(t, deadline.Telemetry, o.n.looker.purposes(b, s)[metrics])
		require.True(t, o.meant("v", "metrics"))
		_ = b.DeleteVHost("v")
	}
	require.False(t, o.meant("_other", "_other"))
}

// TestLeadsOfAVirtualHostMadeAgain: with the same queues and bindings it has the same version as the deleted one.
func TestLeadsOfAVirtualHostMadeAgain(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	var l looker
	for range 2 {
		vh, _, err := b.PutVHost("", "shop", broker.VHostMetadata{})
		require.NoError(t, err)
		_, err = vh.Queues.Declare(nil, "orders", broker.QueueDeclare{Args: amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.dead"}})
		require.NoError(t, err)
		dead, err := vh.Queues.Declare(nil, "orders.dead", broker.QueueDeclare{})
		require.NoError(t, err)
		require.Equal(t, deadline.DeadLetters, l.purpose(b, dead))
		require.NoError(t, b.DeleteVHost("shop"))
	}
}

func purposeAt(t *testing.T, l *looker, b *broker.Broker, name string) deadline.Purpose {
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Get(name)
	require.NoError(t, err)
	return l.purpose(b, q)
}

// TestLeadsFollowChanges: where dead letters lead is found out again when bindings, queues or policies have changed.
func TestLeadsFollowChanges(t *testing.T) {
	b, s := ceilings(t, 2, 1)
	vh, _ := b.VHost("/")
	l, work, target := &looker{}, incident.QueueName{VHost: "/", Name: s.Forecasts[0].Queue}, incident.QueueName{VHost: "/", Name: "target 0"}
	soon := func(want deadline.Purpose) {
		t.Helper()
		require.Eventually(t, func() bool { return purposeAt(t, l, b, target.Name) == want }, time.Minute, time.Millisecond)
	}
	soon(deadline.DeadLetters)
	bound := broker.Binding{Source: "dlx direct", Destination: target.Name, RoutingKey: "key 0"}
	require.NoError(t, vh.Unbind(nil, bound))
	soon(deadline.Work)
	require.NoError(t, vh.Bind(nil, bound))
	soon(deadline.DeadLetters)
	_, err := vh.Queues.Delete(nil, work.Name, broker.QueueDeletion{})
	require.NoError(t, err)
	soon(deadline.Work)
	_, err = vh.Queues.Declare(nil, work.Name, broker.QueueDeclare{})
	require.NoError(t, err)
	_, err = vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "^work", Definition: policy.Definition{"dead-letter-exchange": "", "dead-letter-routing-key": target.Name}})
	require.NoError(t, err)
	soon(deadline.DeadLetters)
	for range leadsKept + 1 {
		l.purposes(b, &incident.State{})
	}
	require.Empty(t, l.leads, "nothing is kept that nobody asks for")
}

// TestLookWhileForecasting: the forecast asks what a queue of an earlier run is for while the conditions are looked at, and after a start both do so at once.
func TestLookWhileForecasting(t *testing.T) {
	t.Setenv("CURFEW_DATA_DIR", t.TempDir())
	c, err := settings.Load()
	require.NoError(t, err)
	n, err := Open(Options{Settings: &c, Metrics: prometheus.NewRegistry(), Log: zap.NewNop()})
	require.NoError(t, err)
	defer func() { require.NoError(t, n.Close()) }()
	b := n.primary.(*ownBroker).broker
	vh, _ := b.VHost("/")
	_, err = vh.Queues.Declare(nil, "earlier", broker.QueueDeclare{})
	require.NoError(t, err)
	n.ready()
	var looked atomic.Int64
	go func() {
		for range 100 {
			n.looker.look(n, &incident.State{Lost: map[string]uint64{}})
			looked.Add(1)
		}
	}()
	for looked.Load() < 100 {
		require.Equal(t, deadline.Work, purposeAt(t, &n.looker, b, "earlier"))
	}
}

// BenchmarkLook is one look at as much as a tenant may make.
func BenchmarkLook(b *testing.B) {
	of, s := ceilings(b, 10_000, 200_000)
	l := &looker{}
	for b.Loop() {
		s.Purposes = l.purposes(of, s)
		incident.Evaluate(s)
	}
}

// TestConsumersComeAndGo: a look tells since when a queue at risk has more consumers, or fewer.
func TestConsumersComeAndGo(t *testing.T) {
	b, s := ceilings(t, 2, 1)
	l, work := &looker{}, incident.QueueName{VHost: "/", Name: s.Forecasts[0].Queue}
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Get(work.Name)
	require.NoError(t, err)
	look := func() incident.Consumers {
		l.purposes(b, s)
		return s.Consumers[work]
	}
	require.Zero(t, look())
	broker.Depart(&q.Messages, broker.Departure{Client: "earlier", At: b.Now().Add(-time.Hour)}) // in an earlier run
	require.Equal(t, "earlier", look().Last)
	require.WithinDuration(t, time.Now().Add(-time.Hour), look().Left, time.Minute)
	c := &broker.Consumer{Tag: "c", Client: "app", Sink: slowSink(func() {})}
	require.NoError(t, q.Messages.Consume(c))
	came := look()
	require.Equal(t, 1, came.Count)
	require.Empty(t, came.Last)
	o := &ownBroker{n: &Node{history: history.New(history.Options{})}, broker: b}
	require.Equal(t, incident.Slow{Who: "app"}, o.slow(work))
	broker.Depart(&q.Messages, broker.Departure{Client: "earlier"})
	require.Empty(t, look().Last, "there is one now")
	require.WithinDuration(t, time.Now(), came.Came, time.Minute)
	require.Equal(t, came, look(), "since then")
	c.Cancel()
	left := look()
	require.Equal(t, "app", left.Last)
	require.False(t, left.Left.Before(came.Came))
	require.Equal(t, came.Came, left.Came)
	require.Empty(t, left.ClosedBy)
	l.noteClosed("app", "ann")
	require.Equal(t, "ann", look().ClosedBy)
	l.closed["app"] = closing{"ann", time.Now().Add(-time.Minute)}
	require.Empty(t, look().ClosedBy, "it came again meanwhile, and left by itself")
}

// TestMissingExchangesAreCounted: the advice makes the first exchange that is missing, and says how many more are.
func TestMissingExchangesAreCounted(t *testing.T) {
	b, err := broker.New(broker.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, b.Close()) }()
	vh, _ := b.VHost("/")
	advice := func() string {
		parked, err := vh.Queues.Get(policy.UndeliverableQueue)
		require.NoError(t, err)
		depth := parkedIn(&undeliverable{VHost: "/", in: vh, queue: parked})
		return depth.Do
	}
	for _, name := range []string{"a", "b", "c"} {
		q, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{Args: amqp.Table{"x-dead-letter-exchange": name + " letters"}})
		require.NoError(t, err)
		p, m := vh.OwnPublisher(), amqp.Properties{}
		_, err = p.Add(&broker.Publication{RoutingKey: []byte(name), Properties: m.Append(nil)})
		require.NoError(t, err)
		p.Flush(nil)
		var seq queue.Seq
		got, err := q.Messages.Get(false, func(x *broker.Delivery) { seq = x.Seq })
		require.NoError(t, err)
		require.True(t, got)
		q.Messages.Settle(broker.Reject, []queue.Seq{seq}, nil)
		require.Contains(t, advice(), "curfew declare exchange ")
		require.Contains(t, advice(), " && curfew dlq replay curfew.undeliverable --vhost / --to onward`")
		require.Equal(t, name != "a", strings.Contains(advice(), "Missing as well: "))
	}
	require.Contains(t, advice(), "Missing as well: 2 more dead-letter exchanges.")
}
