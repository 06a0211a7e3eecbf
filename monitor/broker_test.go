package monitor_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/monitor/schedule"
)

// testBroker is a broker under a monitor, in a bubble of virtual time.
type testBroker struct {
	t         *testing.T
	broker    *broker.Broker
	vh        *broker.VHost
	publisher *broker.Publisher
	monitor   *schedule.Scheduler
	registry  *prometheus.Registry
}

func newTestBroker(t *testing.T) *testBroker {
	b, err := broker.New(broker.Options{Clock: func() int64 { return time.Now().UnixNano() }})
	require.NoError(t, err)
	vh, ok := b.VHost("/")
	require.True(t, ok)
	x := &testBroker{t: t, broker: b, vh: vh, registry: prometheus.NewRegistry(), publisher: vh.NewPublisher("guest")}
	meant := func(_, queue string) bool { return strings.HasPrefix(queue, "readings") }
	x.monitor, err = schedule.New(schedule.Options{Primary: b.Deadlines(), Meant: meant, Registerer: x.registry})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = x.monitor.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		require.NoError(t, b.Close())
	})
	synctest.Wait()
	return x
}

func (x *testBroker) declare(name string, args amqp.Table) *broker.Queue {
	q, err := x.vh.Queues.Declare(nil, name, broker.QueueDeclare{Args: args})
	require.NoError(x.t, err)
	return q
}

func (x *testBroker) publish(queue string, ttl time.Duration) {
	p := amqp.Properties{Expiration: fmt.Sprint(ttl.Milliseconds())}
	_, err := x.publisher.Add(&broker.Publication{RoutingKey: []byte(queue), Properties: p.Append(nil)})
	require.NoError(x.t, err)
	x.publisher.Flush(nil)
}

func (x *testBroker) get(q *broker.Queue, noAck bool) (d broker.Delivery) {
	ok, err := q.Messages.Get(noAck, func(got *broker.Delivery) { d = *got })
	require.NoError(x.t, err)
	require.True(x.t, ok)
	return d
}

func ready(q *broker.Queue) int {
	n, _, _ := q.Messages.Counts()
	return n
}

func unacked(q *broker.Queue) int {
	_, n, _ := q.Messages.Counts()
	return n
}

func TestDeadlinesBehindALongHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		q := x.declare("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		dlq := x.declare("dlq", nil)
		x.publish("q", time.Hour)
		for i := range 100 {
			x.publish("q", time.Duration(i)*10*time.Millisecond)
		}
		for i := range 100 {
			time.Sleep(9 * time.Millisecond)
			require.LessOrEqual(t, ready(dlq), i+1, "not early")
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.GreaterOrEqual(t, ready(dlq), i+1, "on time")
		}
		require.Equal(t, 1, ready(q))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Equal(t, 101, ready(dlq))
		require.Zero(t, x.monitor.Health().Pending)
	})
}

func TestSettledAndHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		q := x.declare("q", nil)
		x.publish("q", time.Minute)
		x.publish("q", time.Minute)
		time.Sleep(time.Second)
		require.Equal(t, int64(2), x.monitor.Health().Pending)

		x.get(q, true)
		time.Sleep(time.Second)
		require.Equal(t, int64(1), x.monitor.Health().Pending)

		held := x.get(q, false)
		time.Sleep(2 * time.Minute)
		require.Equal(t, 1, unacked(q))
		q.Messages.Settle(broker.Requeue, []queue.Seq{held.Seq}, nil)
		time.Sleep(time.Second)
		require.Zero(t, ready(q))
		require.Zero(t, x.monitor.Health().Pending)
	})
}

func TestRescheduledAndFiredByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		q := x.declare("q", nil)
		for range 4 {
			x.publish("q", time.Minute)
		}
		time.Sleep(time.Second)
		var refs []deadline.Ref
		require.NoError(t, x.broker.Deadlines().Snapshot(t.Context(), func(page []deadline.Ref) error {
			refs = append(refs, page...)
			return nil
		}))
		x.broker.Reschedule(refs[0], refs[0].Deadline+1_000_000)
		x.broker.Reschedule(refs[1], x.broker.Now()+1_000_000)
		x.broker.Reschedule(refs[2], 0)
		x.broker.FireNow(refs[3], false)
		synctest.Wait()
		require.Equal(t, 3, ready(q))
		require.Equal(t, int64(2), x.monitor.Health().Pending)
		for _, left := range []struct {
			after time.Duration
			ready int
		}{{999 * time.Millisecond, 3}, {2 * time.Millisecond, 2}, {58 * time.Second, 2}, {time.Second, 1}, {time.Hour, 1}} {
			time.Sleep(left.after)
			synctest.Wait()
			require.Equal(t, left.ready, ready(q), "after %v more", left.after)
		}
		require.Zero(t, x.monitor.Health().Pending)
	})
}

func TestNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t)
		x.declare("orders", nil)
		x.publish("orders", time.Minute)
		var page []deadline.Ref
		require.NoError(t, x.broker.Deadlines().Snapshot(t.Context(), func(p []deadline.Ref) error {
			page = append(page, p...)
			return nil
		}))
		require.Len(t, page, 1)
		vhost, name, ok := x.broker.Deadlines().QueueName(page[0].Queue)
		require.Equal(t, "/ orders true", fmt.Sprint(vhost, " ", name, " ", ok))
		results := x.broker.Deadlines().Expire(page, deadline.Eager, true, nil)
		require.Equal(t, []deadline.Answer{{Outcome: deadline.NotDue, At: page[0].Deadline}}, results)
	})
}
