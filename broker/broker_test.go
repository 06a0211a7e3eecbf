package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

func TestExpireReachesTheMiddleOfAQueueNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q, dlq := x.queue("q", deadLettersToDLQ), x.queue("dlq", nil)
		x.publish("", "q", "hour", "3600000", nil)
		x.publish("", "q", "short", "500", nil)
		x.publish("", "q", "never", "", nil)
		refs := x.deadlines()
		require.Len(t, refs, 2)

		results := x.expire(refs)
		assert.Equal(t, deadline.NotDue, results[0].Outcome)
		assert.Equal(t, deadline.Answer{Outcome: deadline.NotDue, At: refs[1].Deadline}, results[1])

		time.Sleep(500 * time.Millisecond)
		results = x.expire(refs)
		assert.Equal(t, deadline.NotDue, results[0].Outcome)
		assert.Equal(t, deadline.Answer{Outcome: deadline.Expired, At: refs[1].Deadline}, results[1])
		assert.Equal(t, deadline.Gone, x.expire(refs[1:])[0].Outcome, "a message expires once")

		m, ok := x.get(dlq, true)
		require.True(t, ok)
		assert.Equal(t, "short", m.body)
		assert.Equal(t, []string{"hour", "never"}, x.drain(q))
	})
}

func TestExpiredIsNeverHandedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q, dlq := x.queue("q", deadLettersToDLQ), x.queue("dlq", nil)
		for i, ttl := range []string{"10", "20", "", "30"} {
			x.publish("", "q", fmt.Sprint(i), ttl, nil)
		}
		time.Sleep(time.Second)
		assert.Equal(t, []string{"2"}, x.drain(q), "a get passes over every expired message")
		assert.Equal(t, []string{"0", "1", "3"}, x.drain(dlq))
	})
}

func TestUnackedIsHeldAndExpiresWhenItComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q, dlq := x.queue("q", deadLettersToDLQ), x.queue("dlq", nil)
		x.publish("", "q", "m", "100", nil)
		refs := x.deadlines()
		m, ok := x.get(q, false)
		require.True(t, ok)
		time.Sleep(time.Minute)
		assert.Equal(t, deadline.Held, x.expire(refs)[0].Outcome)
		q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
		assert.Empty(t, x.drain(q))
		dead, ok := x.get(dlq, true)
		require.True(t, ok)
		deaths := dead.properties.Headers["x-death"].([]any)
		assert.Equal(t, "100", deaths[0].(amqp.Table)["original-expiration"])
		assert.Zero(t, dead.properties.Expiration)
	})
}

func TestTTLZeroIsDeliveredAtOnceOrExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q, dlq := x.queue("q", deadLettersToDLQ), x.queue("dlq", nil)
		x.publish("", "q", "behind", "", nil)
		x.publish("", "q", "nobody", "0", nil)
		assert.Equal(t, []string{"nobody"}, x.drain(dlq), "expired mid-queue, at once")
		assert.Equal(t, []string{"behind"}, x.drain(q))

		c := newSink(t, q, true)
		x.publish("", "q", "taken", "0", nil)
		assert.Equal(t, []string{"taken"}, c.bodies())
		assert.Empty(t, x.drain(dlq))
	})
}

func TestLowerTTLWinsUnlessMessageFirst(t *testing.T) {
	for _, c := range []struct {
		precedence policy.Precedence
		want       time.Duration
	}{{policy.Lower, 100 * time.Millisecond}, {policy.MessageFirst, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			x := newTestBroker(t, broker.Options{TTLPrecedence: c.precedence})
			x.queue("q", amqp.Table{"x-message-ttl": int32(100)})
			x.publish("", "q", "m", "10000", nil)
			now := x.b.Now()
			assert.Equal(t, c.want, x.deadlines()[0].Deadline.Sub(now))
		})
	}
}

func TestDeathsFoldByQueueAndReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		retry := x.queue("retry", amqp.Table{"x-message-ttl": int32(50), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"})
		work := x.queue("work", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "retry"})
		forged := amqp.Table{"x-death": []any{amqp.Table{"queue": "work", "reason": "rejected", "count": int64(40)}}}
		x.publish("", "work", "m", "", forged)
		started := time.Now().Unix()
		for range 3 {
			m, ok := x.get(work, false)
			require.True(t, ok)
			q := work
			q.Messages.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
			time.Sleep(2 * time.Second)
			_, ok = x.get(retry, true)
			require.False(t, ok, "expired in the retry queue")
		}
		m, ok := x.get(work, true)
		require.True(t, ok)
		h := m.properties.Headers
		assert.Equal(t, []any{
			amqp.Table{
				"queue": "retry", "reason": "expired", "count": int64(3), "time": amqp.Timestamp(started + 2), "last-time": amqp.Timestamp(started + 6),
				"exchange": "", "routing-keys": []any{"retry"},
			},
			amqp.Table{
				"queue": "work", "reason": "rejected", "count": int64(3), "time": amqp.Timestamp(started), "last-time": amqp.Timestamp(started + 4),
				"exchange": "", "routing-keys": []any{"work"},
			},
		}, h["x-death"], "a client's own x-death is not believed, repeats count up and keep their first time")
		assert.Equal(t, []any{"work", "rejected", "retry", "expired"}, []any{
			h["x-first-death-queue"], h["x-first-death-reason"], h["x-last-death-queue"], h["x-last-death-reason"],
		})
	})
}

func TestCycleWithoutRejectionIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		a := x.queue("a", amqp.Table{"x-message-ttl": int32(10), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "b"})
		b := x.queue("b", amqp.Table{"x-message-ttl": int32(10), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "a"})
		x.publish("", "a", "m", "", nil)
		time.Sleep(time.Second)
		assert.Empty(t, x.drain(a))
		time.Sleep(time.Second)
		assert.Empty(t, x.drain(b))
		assert.Empty(t, x.drain(a), "it does not come round")
	})
}

func TestUnroutableDeadLetterIsParkedOrDropped(t *testing.T) {
	for _, c := range []struct {
		unroutable broker.Unroutable
		action     deadline.Action
		parked     []string
	}{{broker.Park, deadline.Parked, []string{"m"}}, {broker.Drop, deadline.Dropped, nil}} {
		synctest.Test(t, func(t *testing.T) {
			x := newTestBroker(t, broker.Options{Unroutable: c.unroutable})
			x.queue("q", amqp.Table{"x-dead-letter-exchange": "missing"})
			x.publish("", "q", "m", "10", nil)
			time.Sleep(time.Second)
			told := x.watched()
			x.expire(x.deadlines())
			assert.Equal(t, c.action, told.take()[0].Action)
			park, err := x.vh.Queues.Get(policy.UndeliverableQueue)
			if c.parked == nil {
				assert.EqualValues(t, amqp.NotFound, code(err))
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.parked, x.drain(park))
		})
	}
}

func TestMaxLengthDropsTheHead(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	args := amqp.Table{"x-max-length": int32(2), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"}
	q, dlq := x.queue("q", args), x.queue("dlq", nil)
	for i := range 4 {
		x.publish("", "q", fmt.Sprint(i), "", nil)
	}
	m, ok := x.get(dlq, true)
	require.True(t, ok)
	assert.Equal(t, "maxlen", m.properties.Headers["x-first-death-reason"])
	assert.Equal(t, []string{"1"}, x.drain(dlq))
	assert.Equal(t, []string{"2", "3"}, x.drain(q))
}

func TestFullQueueRefusesInTheMiddleOfABatch(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", amqp.Table{"x-max-length": int32(2), "x-overflow": "reject-publish"})
	for range 4 {
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: []byte{0, 0}, Body: []byte("m")})
		require.NoError(t, err)
	}
	assert.Equal(t, []int{2, 3}, x.p.Flush(nil))
	ready, _, _ := q.Messages.Counts()
	assert.Equal(t, 2, ready)
}

// Dead letters of one batch keep the order in which they died, whatever of.
func TestDeadLettersOfABatchKeepTheirOrder(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", amqp.Table{
		"x-max-length-bytes": int32(10), "x-overflow": "reject-publish-dlx", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	dlq := x.queue("dlq", nil)
	newSink(t, q, true) // meets the message past its deadline before the next is refused
	add := func(body string, headers amqp.Table) {
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{Headers: headers}).Append(nil), Body: []byte(body)})
		require.NoError(t, err)
	}
	add("too much for it", nil)
	add("late", amqp.Table{"x-expires-at": int64(1000)})
	add("too much again", nil)
	assert.Equal(t, []int{0, 2}, x.p.Flush(nil))
	require.Eventually(t, func() bool { ready, _, _ := dlq.Messages.Counts(); return ready == 3 }, time.Minute, time.Millisecond, "the goroutine of the virtual host may have the turn")
	assert.Equal(t, []string{"too much for it", "late", "too much again"}, x.drain(dlq))
}

func TestUnusedQueueExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", amqp.Table{"x-expires": int32(1000), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
		dlq := x.queue("dlq", nil)
		there := func() bool { _, err := x.vh.Queues.Get("q"); return err == nil }
		time.Sleep(900 * time.Millisecond)
		x.publish("", "q", "m", "", nil)
		x.get(q, false) // renews; the publish did not
		time.Sleep(900 * time.Millisecond)
		require.True(t, there())
		c := newSink(t, q, true)
		time.Sleep(time.Hour)
		require.True(t, there(), "a consumer is use")
		c.c.Cancel()
		time.Sleep(999 * time.Millisecond)
		require.True(t, there())
		time.Sleep(2 * time.Millisecond)
		require.False(t, there())
		assert.Empty(t, x.drain(dlq), "what a queue held when it expired is not dead-lettered")
	})
}

func TestFeedTellsAndLags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		q := x.queue("q", nil)
		x.deadlines() // subscribes
		x.publish("", "q", "a", "100", nil)
		x.publish("", "q", "b", "200", nil)
		x.publish("", "q", "never", "", nil)
		buf := make([]deadline.Event, 16)
		n, lagged, err := x.b.Deadlines().Events(t.Context(), buf)
		require.NoError(t, err)
		require.False(t, lagged)
		require.Equal(t, 2, n)
		a, b := buf[0].Ref, buf[1].Ref

		x.get(q, true) // a, untracked: leaves silently
		assert.Equal(t, []deadline.Ref{b}, x.b.Deadlines().Track([]deadline.Ref{a, b}))
		x.get(q, true)
		n, _, err = x.b.Deadlines().Events(t.Context(), buf)
		require.NoError(t, err)
		assert.Equal(t, []deadline.Event{{Kind: deadline.Left, Ref: b}}, buf[:n])

		x.drain(q)
		x.publish("", "q", "c", "10", nil)
		c := x.one()
		time.Sleep(time.Second)
		told := x.watched()
		x.drain(q)
		n, _, err = x.b.Deadlines().Events(t.Context(), buf)
		require.NoError(t, err)
		assert.Equal(t, []deadline.Event{{Kind: deadline.Enqueued, Ref: c}, {Kind: deadline.Left, Ref: c}}, buf[:n])
		assert.Equal(t, []deadline.Expiry{{VHost: "/", Queue: "q", Ref: c, Arrived: x.b.Now(), Path: deadline.Lazy}}, told.take())
	})
}

func TestQueueAndExchangeErrors(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", amqp.Table{"x-message-ttl": int32(1000)})
	declare := func(name string, args amqp.Table) func() error {
		return func() error {
			_, err := x.vh.Queues.Declare(nil, name, broker.QueueDeclare{Args: args})
			return err
		}
	}
	for _, c := range []struct {
		do   func() error
		text string
	}{
		{declare("n", amqp.Table{"x-message-ttl": int32(-1)}), "PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'n' in vhost '/': {value_negative,-1}"},
		{declare("n", amqp.Table{"x-message-ttl": "1"}), `PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'n' in vhost '/': "expected integer, got longstr"`},
		{declare("n", amqp.Table{"x-message-ttl": int64(policy.MaxTTLMillis + 1)}), "PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'n' in vhost '/': {value_too_large,315360000001}"},
		{declare("n", amqp.Table{"x-expires": int32(0)}), "PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'n' in vhost '/': {value_zero,0}"},
		{declare("n", amqp.Table{"x-dead-letter-routing-key": "k"}), "PRECONDITION_FAILED - invalid arg 'x-dead-letter-routing-key' for queue 'n' in vhost '/': routing_key_but_no_dlx_defined"},
		{declare("q", amqp.Table{"x-message-ttl": int64(2000)}), "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '2000' but current is '1000'"},
		{declare("q", nil), "PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none but current is the value '1000' of type 'signedint'"},
		{declare("amq.mine", nil), "ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"},
		{func() error { return x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "odd"}) }, "PRECONDITION_FAILED - unknown exchange type 'odd'"},
		{func() error {
			return x.vh.Exchanges.Declare("amq.direct", broker.ExchangeDeclare{Kind: "fanout", Durable: true})
		}, "PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'amq.direct' in vhost '/': received 'fanout' but current is 'direct'"},
		{func() error { return x.vh.Exchanges.Delete("", false) }, "ACCESS_REFUSED - operation not permitted on the default exchange"},
		{func() error { return x.vh.Bind(nil, broker.Binding{Source: "none", Destination: "q"}) }, "NOT_FOUND - no exchange 'none' in vhost '/'"},
		{func() error { return x.vh.Bind(nil, broker.Binding{Source: "amq.direct", Destination: "none"}) }, "NOT_FOUND - no queue 'none' in vhost '/'"},
	} {
		assert.Equal(t, c.text, text(c.do()))
	}
	assert.NoError(t, declare("q", amqp.Table{"x-message-ttl": int64(1000)})(), "the width of an integer does not matter")
}

func TestExpirationTexts(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", nil)
	for expiration, reason := range map[string]string{
		"abc": "no_integer", "": "no_integer", "-": "no_integer", "-1": "{value_negative,-1}", "5.0": `{leftover_string,".0"}`,
		"1000s": `{leftover_string,"s"}`, "1e3": `{leftover_string,"e3"}`, "315360000001": "{value_too_large,315360000001}",
		"99999999999999999999": "{value_too_large,99999999999999999999}", "0": "", "007": "", "+5": "", "315360000000": "",
	} {
		p := amqp.Properties{Has: amqp.HasExpiration, Expiration: expiration}
		_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil)})
		if reason == "" {
			assert.NoError(t, err, expiration)
		} else {
			assert.Equal(t, "PRECONDITION_FAILED - invalid expiration '"+expiration+"': "+reason, text(err))
		}
	}
}

func TestRoutesFollowTheTopology(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	a, b := x.queue("a", nil), x.queue("b", nil)
	require.NoError(t, x.vh.Exchanges.Declare("in", broker.ExchangeDeclare{Kind: "topic", Args: amqp.Table{"alternate-exchange": "rest"}}))
	require.NoError(t, x.vh.Exchanges.Declare("rest", broker.ExchangeDeclare{Kind: "fanout"}))
	x.publish("in", "k", "nowhere", "", nil)
	require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "in", Destination: "rest", ToExchange: true, RoutingKey: "k.#"}))
	require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "rest", Destination: "a"}))
	x.publish("in", "k", "through", "", nil)
	x.publish("in", "other", "alternate", "", nil)
	require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "in", Destination: "b", RoutingKey: "*"}))
	x.publish("in", "k", "both", "", nil)
	x.publish("", "a", "copies", "", amqp.Table{"CC": []any{"b"}, "BCC": []any{"b", "none"}})
	assert.Equal(t, []string{"through", "alternate", "both", "copies"}, x.drain(a))
	m, _ := x.get(b, true)
	assert.Equal(t, "both", m.body)
	m, _ = x.get(b, true)
	assert.Contains(t, m.properties.Headers, "CC")
	assert.NotContains(t, m.properties.Headers, "BCC", "no consumer sees it")
	require.NoError(t, x.vh.Exchanges.Delete("rest", false))
	x.publish("in", "k", "less", "", nil)
	assert.Empty(t, x.drain(a))
	assert.Equal(t, []string{"less"}, x.drain(b))
}

func TestExclusiveQueueGoesWithItsOwner(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	owner, other := new(int), new(int)
	_, err := x.vh.Queues.Declare(owner, "q", broker.QueueDeclare{Exclusive: true})
	require.NoError(t, err)
	_, err = x.vh.Queues.GetFor(other, "q")
	assert.EqualValues(t, amqp.ResourceLocked, code(err))
	_, err = x.vh.Queues.Delete(other, "q", broker.QueueDeletion{})
	assert.EqualValues(t, amqp.ResourceLocked, code(err))
	x.vh.Queues.Release(owner)
	_, err = x.vh.Queues.Get("q")
	assert.EqualValues(t, amqp.NotFound, code(err))
}

func TestRedeclaredQueueIsNotExpiredByOldReferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTestBroker(t, broker.Options{})
		x.queue("q", nil)
		x.publish("", "q", "old", "10", nil)
		old := x.deadlines()
		_, err := x.vh.Queues.Delete(nil, "q", broker.QueueDeletion{})
		require.NoError(t, err)
		x.queue("q", nil)
		x.publish("", "q", "new", "10", nil)
		fresh := x.deadlines()
		require.Equal(t, old[0].Seq, fresh[0].Seq)
		time.Sleep(time.Second)
		assert.Equal(t, deadline.Gone, x.expire(old)[0].Outcome)
		assert.Equal(t, deadline.Expired, x.expire(fresh)[0].Outcome)
	})
}

// A consumer of the dead-letter queue may be done with dead letters while the move
// that brought them is not journaled yet.
func TestDeadLettersConsumedAtOnce(t *testing.T) {
	for _, o := range []broker.Options{{}, {Store: store.Options{Dir: t.TempDir()}}} {
		x := newTestBroker(t, o)
		q, dlq := x.durable("q", deadLettersToDLQ), x.durable("dlq", nil)
		c := newSink(t, dlq, true)
		body := strings.Repeat("x", 100_000) // a few fill a segment
		const messages = 200
		for range messages {
			p := amqp.Properties{DeliveryMode: 2, Expiration: "1"}
			_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte(body)})
			require.NoError(t, err)
			x.p.Flush(nil)
		}
		refs := x.deadlines()
		require.Eventually(t, func() bool { return x.b.Now() > refs[messages-1].Deadline }, time.Minute, time.Millisecond)
		told := x.watched()
		x.expire(refs)
		for _, e := range told.take() {
			assert.Equal(t, deadline.DeadLettered, e.Action)
		}
		assert.Len(t, c.take(), messages)
		ready, unacked, _ := q.Messages.Counts()
		assert.Zero(t, ready+unacked)
		x.commit()
	}
}
