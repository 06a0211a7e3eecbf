package deadletters_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/deadline"
	"curfew/broker/operate"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// desk is a broker whose queue "q" dead-letters to "dlq".
type desk struct {
	t      testing.TB
	b      *broker.Broker
	vh     *broker.VHost
	p      *broker.Publisher
	q, dlq *broker.Queue
	memory atomic.Int64 // in use; above memoryLimit publishers have to wait
}

const memoryLimit = 1 << 30

func openDesk(t testing.TB, dir string) *desk {
	d := &desk{t: t}
	b, err := broker.New(broker.Options{Store: store.Options{Dir: dir}, MemoryLimit: memoryLimit, MemoryInUse: d.memory.Load})
	require.NoError(t, err)
	vh, _ := b.VHost("/")
	d.b, d.vh, d.p = b, vh, vh.OwnPublisher()
	d.q = d.declare("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	d.dlq = d.declare("dlq", nil)
	return d
}

func newDesk(t testing.TB) *desk {
	d := openDesk(t, "")
	t.Cleanup(func() { require.NoError(t, d.b.Close()) })
	return d
}

func (d *desk) declare(name string, args amqp.Table) *broker.Queue {
	q, err := d.vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true, Args: args})
	require.NoError(d.t, err)
	return q
}

func (d *desk) publish(exchange, key, body string, p amqp.Properties) {
	d.t.Helper()
	_, err := d.p.Add(&broker.Publication{Exchange: []byte(exchange), RoutingKey: []byte(key), Properties: p.Append(nil), Body: []byte(body)})
	require.NoError(d.t, err)
	d.p.Flush(nil)
}

// expire dead-letters what stands in q.
func (d *desk) expire(q *broker.Queue) {
	d.t.Helper()
	for _, x := range d.queued(q) {
		require.Equal(d.t, deadline.Expired, d.b.FireNow(q.Messages.Ref(&x), false))
	}
}

// reject dead-letters the first message of q.
func (d *desk) reject(q *broker.Queue) {
	d.t.Helper()
	var seq queue.Seq
	ok, err := q.Messages.Get(false, func(x *broker.Delivery) { seq = x.Seq })
	require.NoError(d.t, err)
	require.True(d.t, ok)
	q.Messages.Settle(broker.Reject, []queue.Seq{seq}, nil)
}

func (d *desk) queued(q *broker.Queue) []broker.Browsed {
	d.t.Helper()
	found, err := q.Messages.Browse(broker.Browse{Count: 1 << 20, BodyBytes: -1})
	require.NoError(d.t, err)
	return found
}

func (d *desk) bodies(q *broker.Queue) (bodies []string) {
	for _, x := range d.queued(q) {
		bodies = append(bodies, string(x.Message.Body))
	}
	return bodies
}

// replays are those of a desk, as an administrator handles them.
type replays struct{ *operate.Operations }

var root = operate.Actor{Name: "root", Tags: []string{"administrator"}}

func (d *desk) runs(dir string) replays {
	d.t.Helper()
	r := replays{operate.New(operate.Options{Broker: d.b})}
	if dir != "" {
		require.NoError(d.t, r.OpenReplays(dir))
	}
	d.t.Cleanup(r.Close)
	return r
}

func (r replays) Start(ctx context.Context, o deadletters.Request) (deadletters.Replay, error) {
	return r.Replay(ctx, o)
}

func (r replays) List() []deadletters.Replay {
	list, _ := operate.ListReplays.Do(context.Background(), r.Operations, root, operate.None{})
	return list
}

func (r replays) Get(id string) (deadletters.Replay, error) {
	return operate.ShowReplay.Do(context.Background(), r.Operations, root, operate.ReplayName{ID: id})
}

func (r replays) Cancel(id string) (deadletters.Replay, error) {
	return operate.CancelReplay.Do(context.Background(), r.Operations, root, operate.ReplayName{ID: id})
}

func (r replays) Resume(id string) (deadletters.Replay, error) {
	return operate.ResumeReplay.Do(context.Background(), r.Operations, root, operate.ReplayName{ID: id})
}

// replay carries an order about "dlq" out and returns how it ended.
func (d *desk) replay(r replays, o deadletters.Request) deadletters.Replay {
	d.t.Helper()
	o.VHost, o.Queue = "/", "dlq"
	run, err := r.Start(d.t.Context(), o)
	require.NoError(d.t, err)
	return d.wait(r, run.ID, o.DryRun, run)
}

func (d *desk) wait(r replays, id string, dry bool, run deadletters.Replay) deadletters.Replay {
	d.t.Helper()
	if dry {
		return run
	}
	require.Eventually(d.t, func() bool {
		var err error
		run, err = r.Get(id)
		require.NoError(d.t, err)
		return run.State != deadletters.Running
	}, time.Minute, time.Millisecond)
	return run
}

// dead makes n dead letters with the bodies 0, 1, ...
func (d *desk) dead(n int) {
	for i := range n {
		d.publish("", "q", fmt.Sprint(i), amqp.Properties{DeliveryMode: 2, MessageID: fmt.Sprint("id-", i)})
	}
	d.expire(d.q)
}

// count is how many ready messages of q the filter matches.
func count(ctx context.Context, q *broker.Queue, f deadletters.Filter) (int, error) {
	found, _, err := deadletters.Search(ctx, q, f, deadletters.Look{Count: math.MaxInt})
	return len(found), err
}
