package broker_test

import (
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

// events reads what the feed has.
func (x *testBroker) events() []deadline.Event {
	buf := make([]deadline.Event, 64)
	n, lagged, err := x.b.Deadlines().Events(x.t.Context(), buf)
	require.NoError(x.t, err)
	require.False(x.t, lagged)
	return buf[:n]
}

// one is the only message with a deadline.
func (x *testBroker) one() deadline.Ref {
	x.t.Helper()
	refs := x.deadlines()
	require.Len(x.t, refs, 1)
	return refs[0]
}

func TestReschedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", nil)
		x.deadlines() // subscribes
		x.publish("", "q", "m", "1000", nil)
		first := x.one()
		x.events()

		later := first
		later.Deadline += 500_000
		outcome, ref := x.b.Reschedule(first, later.Deadline)
		assert.Equal(t, deadline.Rescheduled, outcome)
		assert.Equal(t, later, ref)
		assert.Equal(t, []deadline.Event{
			{Kind: deadline.Left, Ref: first}, {Kind: deadline.Changed, Ref: later},
		}, x.events())
		outcome, _ = x.b.Reschedule(first, 0)
		assert.Equal(t, deadline.Gone, outcome, "it has another deadline")
		time.Sleep(1200 * time.Millisecond)
		assert.Equal(t, deadline.Gone, x.expire([]deadline.Ref{first})[0].Outcome)

		outcome, ref = x.b.Reschedule(later, 0)
		assert.Equal(t, deadline.Rescheduled, outcome)
		assert.Zero(t, ref.Deadline)
		assert.Empty(t, x.deadlines())
		outcome, ref = x.b.Reschedule(ref, later.Deadline+1_000_000)
		assert.Equal(t, deadline.Rescheduled, outcome)
		assert.Equal(t, ref, x.one(), "it has one again")
		assert.Equal(t, []deadline.Event{{Kind: deadline.Changed, Ref: ref}}, x.events(), "nobody tracked the one before")

		outcome, _ = x.b.Reschedule(ref, 0)
		assert.Equal(t, deadline.Rescheduled, outcome)
		time.Sleep(time.Hour)
		assert.Equal(t, []string{"m"}, x.drain(q), "it would have lived forever")
		outcome, _ = x.b.Reschedule(deadline.Ref{Queue: 12345, Seq: 1}, 1)
		assert.Equal(t, deadline.Gone, outcome)
	})
}

func TestFireNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		dlq := x.queue("dlq", nil)
		x.publish("", "q", "first", "", nil)
		for _, body := range []string{"dead-lettered", "dropped", "past", "kept"} {
			x.publish("", "q", body, "1000", nil)
		}
		refs := x.deadlines()
		told := x.watched()
		assert.Equal(t, deadline.Expired, x.b.FireNow(refs[0], false))
		assert.Equal(t, deadline.Expired, x.b.FireNow(refs[1], true))
		assert.Equal(t, deadline.Gone, x.b.FireNow(refs[1], false))
		outcome, _ := x.b.Reschedule(refs[2], x.b.Now())
		assert.Equal(t, deadline.Expired, outcome)
		never := deadline.Ref{Queue: q.ID, Seq: 1}
		assert.Equal(t, deadline.Expired, x.b.FireNow(never, false), "it had none")

		expiry := func(ref deadline.Ref, action deadline.Action) deadline.Expiry {
			return deadline.Expiry{VHost: "/", Queue: "q", Ref: ref, Arrived: x.b.Now(), Action: action, Path: deadline.Manual}
		}
		assert.Equal(t, []deadline.Expiry{
			expiry(refs[0], deadline.DeadLettered), expiry(refs[1], deadline.Dropped), expiry(refs[2], deadline.DeadLettered), expiry(never, deadline.DeadLettered),
		}, told.take())
		m, ok := x.get(dlq, true)
		require.True(t, ok)
		assert.Equal(t, "dead-lettered", m.body)
		assert.Equal(t, "expired", m.properties.Headers["x-first-death-reason"])
		assert.Equal(t, []string{"past", "first"}, x.drain(dlq))
		assert.Equal(t, []string{"kept"}, x.drain(q))
	})
}

func TestRescheduleOfAHeldMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		dlq := x.queue("dlq", nil)
		x.publish("", "q", "m", "1000", nil)
		held, _ := x.get(q, false)
		outcome, ref := x.b.Reschedule(x.one(), x.b.Now()+2_000_000)
		assert.Equal(t, deadline.Rescheduled, outcome)
		time.Sleep(1500 * time.Millisecond)
		q.Messages.Settle(broker.Requeue, []queue.Seq{held.seq}, nil)
		held, ok := x.get(q, false)
		require.True(t, ok, "its deadline lies ahead")

		assert.Equal(t, deadline.Held, x.b.FireNow(ref, false))
		assert.Equal(t, x.b.Now(), x.one().Deadline)
		assert.Equal(t, deadline.Held, x.expire(x.deadlines())[0].Outcome)
		q.Messages.Settle(broker.Requeue, []queue.Seq{held.seq}, nil)
		assert.Empty(t, x.drain(q))
		assert.Equal(t, []string{"m"}, x.drain(dlq))
	})
}

func TestNewDeadlinesOutliveARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("q", nil)
	for _, body := range []string{"later", "never", "fired", "as it was"} {
		x.publishPersistent("", "q", body, "3600000")
	}
	refs := x.deadlines()
	_, later := x.b.Reschedule(refs[0], refs[0].Deadline+3_600_000_000)
	_, later = x.b.Reschedule(later, later.Deadline+1)
	x.b.Reschedule(refs[1], 0)
	x.b.FireNow(refs[2], false)
	for range 2 {
		x.commit()
		x = restarted(t, o, x.b)
		assert.Equal(t, []deadline.Ref{later, refs[3]}, x.deadlines())
	}
	q, err := x.vh.Queues.Get("q")
	require.NoError(t, err)
	assert.Equal(t, []string{"later", "never", "as it was"}, x.drain(q))
	require.NoError(t, x.b.Close())
}

// A message that fails again and again is not given more tries by restarts.
func TestFailedDeliveriesOutliveARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openTestBroker(t, o)
	x.durable("dlq", nil)
	q := x.durable("q", amqp.Table{"x-queue-type": "quorum", "x-delivery-limit": int32(2), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	x.publishPersistent("", "q", "m", "")
	for range 3 {
		m, ok := x.get(q, false)
		require.True(t, ok)
		q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
		x = restarted(t, o, x.b)
		var err error
		q, err = x.vh.Queues.Get("q")
		require.NoError(t, err)
	}
	assert.Empty(t, x.drain(q))
	dlq, err := x.vh.Queues.Get("dlq")
	require.NoError(t, err)
	assert.Equal(t, []string{"m"}, x.drain(dlq))
	require.NoError(t, x.b.Close())
}
