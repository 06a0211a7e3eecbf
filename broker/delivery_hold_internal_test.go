package broker

import (
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// manySink takes what it is offered, up to a prefetch.
type manySink struct {
	prefetch int
	held     []queue.Seq
}

func (s *manySink) Pull(_ *Consumer, src *Source, most int) (taken int, more bool) {
	var d Delivery
	for ; taken < most && len(s.held) < s.prefetch && src.Next(&d); taken++ {
		s.held = append(s.held, d.Seq)
	}
	return taken, len(s.held) < s.prefetch
}

func (*manySink) Cancelled(*Consumer) {}

func (*manySink) Lapsed(uint64, queue.Seq) bool { return true }

// TestNoStepTouchesVeryMany: whatever is done to a queue with very many messages, few are worked on
// under one lock.
func TestNoStepTouchesVeryMany(t *testing.T) {
	const n, bound = 30 * queue.AtOnce, 3 * queue.AtOnce
	var now atomic.Int64
	now.Store(int64(time.Hour))
	type fixture struct {
		b    *Broker
		vh   *VHost
		q    *Queue
		sink *manySink
		c    *Consumer
	}
	consume := func(x *fixture, prefetch int) {
		x.sink = &manySink{prefetch: prefetch}
		x.c = &Consumer{Tag: "c", Sink: x.sink}
		require.NoError(t, x.q.Messages.Consume(x.c))
		x.c.Wake()
		require.Len(t, x.sink.held, prefetch)
	}
	for name, c := range map[string]struct {
		args       amqp.Table
		expiration string
		do         func(x *fixture)
		ready      int
		dead       int // dead letters
	}{
		"purge": {do: func(x *fixture) { assert.Equal(t, n, x.q.Messages.Purge()) }},
		"purge beside unacked messages": {do: func(x *fixture) {
			consume(x, n/2)
			assert.Equal(t, n/2, x.q.Messages.Purge())
			x.q.Messages.Settle(Requeue, x.sink.held, nil)
			x.c.Cancel()
		}, ready: n / 2},
		"delete": {do: func(x *fixture) {
			gone, err := x.vh.Queues.Delete(nil, "q", QueueDeletion{})
			require.NoError(t, err)
			assert.Equal(t, n, gone)
		}},
		"delete of a virtual host": {do: func(x *fixture) { require.NoError(t, x.b.DeleteVHost("many")) }},
		"a lower limit by a policy": {do: func(x *fixture) {
			_, err := x.vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "^q$", ApplyTo: policy.Queues, Definition: policy.Definition{"max-length": int64(5)}})
			require.NoError(t, err)
		}, ready: 5, dead: n - 5},
		"a time to live for the backlog": {do: func(x *fixture) {
			_, done, err := x.vh.Policies.SetForBacklog(policy.User, policy.Policy{Name: "p", Pattern: "^q$", Definition: policy.Definition{"message-ttl": int64(60_000)}})
			require.NoError(t, err)
			assert.Equal(t, BacklogEffect{Queues: 1, Earlier: n, Names: []string{"q"}}, done)
		}, ready: n},
		"a backlog that expires": {do: func(x *fixture) {
			consume(x, n/2)
			_, done, err := x.vh.Policies.SetForBacklog(policy.User, policy.Policy{Name: "p", Pattern: "^q$", Definition: policy.Definition{"message-ttl": int64(0)}})
			require.NoError(t, err)
			assert.Equal(t, BacklogEffect{Queues: 1, Earlier: n, Expired: n / 2, Names: []string{"q"}}, done)
			x.q.Messages.Settle(Requeue, x.sink.held, nil)
		}, dead: n},
		"one message that takes the place of many": {args: amqp.Table{"x-max-length-bytes": int64(n)}, do: func(x *fixture) {
			p := x.vh.NewPublisher("guest")
			addMessage(t, p, "q", make([]byte, n-1), "")
			p.Flush(nil)
		}, ready: 2, dead: n - 1},
		"deliver and settle": {do: func(x *fixture) {
			consume(x, n)
			x.q.Messages.Settle(Ack, x.sink.held, x.c)
		}},
		"reject": {do: func(x *fixture) {
			consume(x, n)
			x.q.Messages.Settle(Reject, x.sink.held, x.c)
		}, dead: n},
		"requeue": {do: func(x *fixture) {
			consume(x, n)
			held := x.sink.held
			x.sink.prefetch = 0
			x.q.Messages.Settle(Requeue, held, x.c)
		}, ready: n},
		"waits that begin and end": {do: func(x *fixture) {
			_, err := x.vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "^q$", ApplyTo: policy.Queues, Definition: policy.Definition{"retry-backoff": "1s"}})
			require.NoError(t, err)
			consume(x, n)
			held := x.sink.held
			x.q.Messages.Settle(Return, held, x.c)
			assert.Equal(t, n, x.q.Messages.State().Waiting)
			x.sink.held = nil
			now.Add(int64(time.Second))
			x.b.env.Timers.RunDue() // beside the goroutine that does
			require.Eventually(t, func() bool { return x.q.Messages.State().Unacked == n }, time.Minute, time.Millisecond)
			x.sink.prefetch = 0
			x.q.Messages.Settle(PutBack, x.sink.held, x.c)
		}, ready: n},
		"locks that a receiver leaves behind": {args: amqp.Table{"x-lock-duration": int64(1000)}, do: func(x *fixture) {
			consume(x, n)
			x.q.Messages.Locks.Keep(x.sink.held, x.c)
			assert.Equal(t, n, x.q.Messages.State().Unacked)
			x.c.Cancel()
			now.Add(int64(2 * time.Second))
			require.Eventually(t, func() bool { x.b.env.Timers.RunDue(); return x.q.Messages.State().Unacked == 0 }, time.Minute, time.Millisecond)
		}, ready: n},
		"purge of what waits": {do: func(x *fixture) {
			_, err := x.vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: "^q$", ApplyTo: policy.Queues, Definition: policy.Definition{"retry-backoff": "1s"}})
			require.NoError(t, err)
			consume(x, n)
			x.q.Messages.Settle(Return, x.sink.held, nil)
			x.c.Cancel()
			assert.Equal(t, n, x.q.Messages.Purge())
		}},
		"expiry that a get meets": {expiration: "1", do: func(x *fixture) {
			now.Add(int64(time.Second))
			got, err := x.q.Messages.Get(true, func(*Delivery) {})
			require.NoError(t, err)
			assert.False(t, got)
		}, dead: n},
		"expiry that a consumer meets": {expiration: "1", do: func(x *fixture) {
			now.Add(int64(time.Second))
			consume(x, 0)
			x.sink.prefetch = n
			x.c.Wake()
			assert.Empty(t, x.sink.held)
		}, dead: n},
		"one transaction": {do: func(x *fixture) {
			p := x.vh.NewPublisher("guest")
			for range n {
				addMessage(t, p, "q", []byte("x"), "")
			}
			p.Transact(nil, nil)
		}, ready: 2 * n},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := New(Options{Clock: now.Load})
			require.NoError(t, err)
			defer func() { assert.NoError(t, b.Close()) }()
			vh, _, err := b.PutVHost("guest", "many", VHostMetadata{})
			require.NoError(t, err)
			args := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
			for k, v := range c.args {
				args[k] = v
			}
			q, err := vh.Queues.Declare(nil, "q", QueueDeclare{Args: args})
			require.NoError(t, err)
			dead, err := vh.Queues.Declare(nil, "dead", QueueDeclare{})
			require.NoError(t, err)
			x := &fixture{b: b, vh: vh, q: q}
			p := vh.NewPublisher("guest")
			for i := range n {
				addMessage(t, p, "q", []byte("x"), c.expiration)
				if i%100 == 99 || i == n-1 {
					p.Flush(nil)
				}
			}
			b.env.Holds.Touched.Store(0)
			c.do(x)
			require.NoError(t, b.Forwarded(t.Context()))
			touched := b.env.Holds.Touched.Load()
			assert.NotZero(t, touched)
			assert.LessOrEqual(t, touched, int64(bound), strconv.Itoa(n)+" messages")
			assert.Equal(t, c.ready, q.Messages.State().Ready)
			assert.Equal(t, c.dead, dead.Messages.State().Ready)
			assert.Zero(t, q.Messages.State().Unacked)
		})
	}
}

// TestExpireDoesNotWait: while a queue is in use, nothing happens to its messages, and the answer
// says so.
func TestExpireDoesNotWait(t *testing.T) {
	var now atomic.Int64
	now.Store(int64(time.Hour))
	b, err := New(Options{Clock: now.Load})
	require.NoError(t, err)
	defer func() { assert.NoError(t, b.Close()) }()
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", QueueDeclare{})
	require.NoError(t, err)
	p := vh.NewPublisher("guest")
	addMessage(t, p, "q", []byte("x"), "10")
	p.Flush(nil)
	var due []deadline.Ref
	require.NoError(t, b.Deadlines().Snapshot(t.Context(), func(page []deadline.Ref) error {
		due = append(due, page...)
		return nil
	}))
	now.Add(int64(time.Second))
	c := &Consumer{Tag: "c", Sink: pullFunc(func() {
		answers := b.Deadlines().Expire(due, deadline.Eager, false, nil)
		assert.Equal(t, []deadline.Answer{{Outcome: deadline.Busy}}, answers)
	})}
	require.NoError(t, q.Messages.Consume(c))
	c.Wake()
	answers := b.Deadlines().Expire(due, deadline.Eager, false, nil)
	assert.Equal(t, deadline.Expired, answers[0].Outcome)
}

// pullFunc is called under the queue's lock.
type pullFunc func()

func (f pullFunc) Pull(*Consumer, *Source, int) (int, bool) {
	f()
	return 0, false
}

func (pullFunc) Cancelled(*Consumer) {}

func addMessage(t *testing.T, p *Publisher, queue string, body []byte, expiration string) {
	properties := amqp.Properties{Expiration: expiration}
	_, err := p.Add(&Publication{RoutingKey: []byte(queue), Properties: properties.Append(nil), Body: body})
	require.NoError(t, err)
}

// TestPurgedMessagesStayAway: what a purge has removed does not come back after a crash that follows
// its answer, and what a consumer held stays.
func TestPurgedMessagesStayAway(t *testing.T) {
	const n, held = 5 * queue.AtOnce, 10
	dir := t.TempDir()
	open := func(dir string) *Broker {
		b, err := New(Options{Store: store.Options{Dir: dir}})
		require.NoError(t, err)
		return b
	}
	b := open(dir)
	vh, _ := b.VHost("/")
	q, err := vh.Queues.Declare(nil, "q", QueueDeclare{Durable: true})
	require.NoError(t, err)
	p := vh.NewPublisher("guest")
	properties := amqp.Properties{DeliveryMode: 2}
	for range n {
		_, err := p.Add(&Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil), Body: []byte("x")})
		require.NoError(t, err)
	}
	p.Flush(nil)
	c := &Consumer{Tag: "c", Sink: &manySink{prefetch: held}}
	require.NoError(t, q.Messages.Consume(c))
	c.Wake()
	require.Equal(t, n-held, q.Messages.Purge())
	crashed := CopyOfRunning(t, dir)
	require.NoError(t, b.Close())

	again := open(crashed)
	defer func() { assert.NoError(t, again.Close()) }()
	vh, _ = again.VHost("/")
	q, err = vh.Queues.Get("q")
	require.NoError(t, err)
	require.Equal(t, held, q.Messages.State().Ready)
}
