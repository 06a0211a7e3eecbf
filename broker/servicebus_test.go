package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// failed gets the message at the head of q over and over and requeues it, and returns how
// often it came.
func (x *bench) failed(q *broker.Queue, most int) (deliveries int) {
	for deliveries < most {
		m, ok := x.get(q, false)
		if !ok {
			break
		}
		deliveries++
		q.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
	}
	return deliveries
}

func (x *bench) clear(name string) {
	x.t.Helper()
	_, err := x.vh.ClearPolicy(policy.User, name)
	require.NoError(x.t, err)
}

func TestMaxDeliveryCount(t *testing.T) {
	const none = 50
	quorum := amqp.Table{"x-queue-type": "quorum"}
	for name, c := range map[string]struct {
		args   amqp.Table
		policy policy.Definition
		want   int
	}{
		"classic":                       {amqp.Table{"x-max-delivery-count": int32(3)}, nil, 3},
		"one":                           {amqp.Table{"x-max-delivery-count": int32(1)}, nil, 1},
		"priorities":                    {amqp.Table{"x-max-delivery-count": int32(2), "x-max-priority": int32(3)}, nil, 2},
		"single active":                 {amqp.Table{"x-max-delivery-count": int32(2), "x-single-active-consumer": true}, nil, 2},
		"quorum":                        {amqp.Table{"x-queue-type": "quorum", "x-max-delivery-count": int32(3)}, nil, 3},
		"in place of quorum's default":  {amqp.Table{"x-queue-type": "quorum", "x-max-delivery-count": int32(30)}, nil, 30},
		"the delivery limit is lower":   {amqp.Table{"x-queue-type": "quorum", "x-max-delivery-count": int32(9), "x-delivery-limit": int32(2)}, nil, 3},
		"the delivery limit is higher":  {amqp.Table{"x-queue-type": "quorum", "x-max-delivery-count": int32(2), "x-delivery-limit": int32(9)}, nil, 2},
		"no delivery limit":             {amqp.Table{"x-queue-type": "quorum", "x-max-delivery-count": int32(2), "x-delivery-limit": int32(-1)}, nil, 2},
		"policy":                        {nil, policy.Definition{"max-delivery-count": int64(4)}, 4},
		"policy and quorum":             {quorum, policy.Definition{"max-delivery-count": int64(30)}, 30},
		"the policy is lower":           {amqp.Table{"x-max-delivery-count": int32(9)}, policy.Definition{"max-delivery-count": int64(4)}, 4},
		"the argument is lower":         {amqp.Table{"x-max-delivery-count": int32(3)}, policy.Definition{"max-delivery-count": int64(4)}, 3},
		"a policy's delivery limit too": {quorum, policy.Definition{"max-delivery-count": int64(4), "delivery-limit": int64(1)}, 2},
		"neither":                       {nil, nil, none},
	} {
		t.Run(name, func(t *testing.T) {
			x := newBench(t, broker.Options{})
			args := amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"}
			for k, v := range c.args {
				args[k] = v
			}
			dlq, q := x.queue("dlq", nil), x.durable("q", args)
			if c.policy != nil {
				x.govern(c.policy)
			}
			x.publish("", "q", "m", "", nil)
			assert.Equal(t, c.want, x.failed(q, none))
			if c.want == none {
				return
			}
			m, ok := x.get(dlq, true)
			require.True(t, ok)
			assert.Equal(t, "delivery_limit", m.properties.Headers["x-first-death-reason"])
			assert.Equal(t, "delivery_limit", m.properties.Headers["x-death"].([]any)[0].(amqp.Table)["reason"])
			if c.args["x-delivery-limit"] == nil && c.policy["delivery-limit"] == nil {
				assert.Equal(t, "MaxDeliveryCountExceeded", m.properties.Headers["DeadLetterReason"])
				assert.Regexp(t, `^Message could not be consumed after \d+ delivery attempts\.$`, m.properties.Headers["DeadLetterErrorDescription"])
			}
		})
	}
}

// TestMaxDeliveryCountCountsLapsedLocks: by the clock alone, in Service Bus's words.
func TestMaxDeliveryCountCountsLapsedLocks(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *bench) {
		q := x.queue("q", amqp.Table{"x-lock-duration": int32(1000), "x-max-delivery-count": int32(3), "x-dead-letter-queue": true})
		dead, err := x.vh.Queue(deadLetters)
		require.NoError(t, err)
		x.publish("", "q", "m", "", nil)
		for range 3 {
			assert.Empty(t, x.drain(dead))
			_, ok := x.get(q, false)
			require.True(t, ok)
			after(1001 * time.Millisecond)
		}
		m, ok := x.get(dead, false)
		require.True(t, ok)
		assert.Equal(t, "MaxDeliveryCountExceeded", m.properties.Headers["DeadLetterReason"])
		assert.Equal(t, "Message could not be consumed after 3 delivery attempts.", m.properties.Headers["DeadLetterErrorDescription"])
		x.policy(policy.User, policy.Policy{Name: "all", Pattern: ".*", Definition: policy.Definition{"max-delivery-count": int64(1), "dead-letter-queue": true, "auto-delete-on-idle": int64(300_000)}})
		dead.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
		assert.Equal(t, 20, x.failed(dead, 20), "nothing is dead-lettered from a dead-letter queue")
	})
}

func TestMaxDeliveryCountOutlivesARestart(t *testing.T) {
	for name, byPolicy := range map[string]bool{"argument": false, "policy": true} {
		t.Run(name, func(t *testing.T) {
			o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
			x := openBench(t, o)
			args := amqp.Table{"x-dead-letter-queue": true}
			if byPolicy {
				x.govern(policy.Definition{"max-delivery-count": int64(3)})
			} else {
				args["x-max-delivery-count"] = int32(3)
			}
			q := x.durable("q", args)
			x.publishPersistent("", "q", "m", "")
			require.Equal(t, 2, x.failed(q, 2))
			x.commit()
			x = restarted(t, o, x.b)
			q, err := x.vh.Queue("q")
			require.NoError(t, err)
			require.Equal(t, 1, x.failed(q, 9))
			dead, err := x.vh.Queue(deadLetters)
			require.NoError(t, err)
			assert.Equal(t, []string{"m"}, x.drain(dead))
			require.NoError(t, x.b.Close())
		})
	}
}

// TestArgumentsThatMeanNothing are refused if they are Curfew's own or Service Bus's; what
// is nobody's, or a plugin's of RabbitMQ, passes.
func TestArgumentsThatMeanNothing(t *testing.T) {
	x := newBench(t, broker.Options{})
	for arg, why := range map[string]string{
		"x-expires-at": `"a header of messages"`, "x-scheduled-enqueue-time": `"a header of messages"`, "x-requires-session": `"sessions are not supported"`,
		"x-default-message-time-to-live": `"use x-message-ttl"`, "x-forward-to": `"auto-forwarding is not supported"`,
	} {
		_, err := x.vh.DeclareQueue(nil, "q", broker.QueueDeclare{Args: amqp.Table{arg: int32(1)}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg '"+arg+"' for queue 'q' in vhost '/': "+why, text(err))
		err = x.vh.DeclareExchange("x", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{arg: int32(1)}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg '"+arg+"' for exchange 'x' in vhost '/': "+why, text(err))
	}
	for arg, value := range map[string]any{
		"x-lock-duration": int32(1000), "x-dead-letter-queue": true, "x-max-delivery-count": int32(3), "x-ttl-precedence": "min",
		"x-delivery-deadline": true, "x-remaining-expiration": true,
	} {
		err := x.vh.DeclareExchange("x", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{arg: value}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg '"+arg+"' for exchange 'x' in vhost '/': \"an argument of queues\"", text(err))
	}
	for value, why := range map[any]string{
		int32(0): "{value_zero,0}", int32(-1): "{value_negative,-1}", int32(65_536): "{value_too_large,65536}", "3": `"expected integer, got longstr"`,
	} {
		_, err := x.vh.DeclareQueue(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-max-delivery-count": value}})
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg 'x-max-delivery-count' for queue 'q' in vhost '/': "+why, text(err))
	}
	err := x.vh.DeclareExchange("x", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{"x-auto-delete-on-idle": int32(299_999)}})
	assert.Equal(t, "PRECONDITION_FAILED - invalid arg 'x-auto-delete-on-idle' for exchange 'x' in vhost '/': {value_too_small,299999}", text(err))
	others := amqp.Table{"x-message-deduplication": true, "x-cache-size": int32(9), "x-modulus": int32(7), "x-delay": int32(5), "x-whatever": "y"}
	x.queue("q", others)
	require.NoError(t, x.vh.DeclareExchange("x", broker.ExchangeDeclare{Kind: "fanout", Args: others}))
	x.queue("counted", amqp.Table{"x-max-delivery-count": int32(3)})
	_, err = x.vh.DeclareQueue(nil, "counted", broker.QueueDeclare{Args: amqp.Table{"x-max-delivery-count": int32(4)}})
	assert.Equal(t, "PRECONDITION_FAILED - inequivalent arg 'x-max-delivery-count' for queue 'counted' in vhost '/': received '4' but current is '3'", text(err))
}

func TestLockDurationOfAPolicy(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *bench) {
		q, short := x.queue("q", nil), x.queue("q.short", amqp.Table{"x-lock-duration": int32(500)})
		for _, body := range []string{"1", "2", "3", "4"} {
			x.publish("", "q", body, "", nil)
		}
		x.publish("", "q.short", "1", "", nil)
		unacked := func(q *broker.Queue) int {
			_, n, _ := q.Counts()
			return n
		}
		x.get(q, false)
		x.govern(policy.Definition{"lock-duration": int64(60_000)})
		x.get(q, false)
		x.get(short, false)
		after(501 * time.Millisecond)
		assert.Zero(t, unacked(short), "the lower of two")
		assert.Equal(t, 2, unacked(q))
		x.govern(policy.Definition{"lock-duration": int64(1000)})
		x.get(q, false)
		after(1001 * time.Millisecond)
		assert.Equal(t, 2, unacked(q), "the shorter lock lapses before the older one")
		m, _ := x.get(q, false)
		require.Equal(t, "3", m.body)
		x.clear("p")
		after(1001 * time.Millisecond)
		assert.Equal(t, 2, unacked(q), "a lock that was given stays one")
		after(time.Minute)
		assert.Equal(t, 1, unacked(q), "that of before the policy is none")
		for range 3 {
			x.get(q, false)
		}
		after(time.Hour)
		assert.Equal(t, 4, unacked(q), "no policy, no lock")
	})
}

// TestSettledLocksAreForgotten, though the policy that made them has gone.
func TestSettledLocksAreForgotten(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *bench) {
		q := x.queue("q", nil)
		x.govern(policy.Definition{"lock-duration": int64(1000)})
		x.publish("", "q", "m", "", nil)
		m, _ := x.get(q, false)
		x.clear("p")
		q.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
		_, ok := x.get(q, false)
		require.True(t, ok)
		after(time.Hour)
		_, unacked, _ := q.Counts()
		assert.Equal(t, 1, unacked)
	})
}

func TestDeadLetterQueueOfAPolicy(t *testing.T) {
	x := newBench(t, broker.Options{})
	q, no := x.queue("q", nil), x.queue("q.no", amqp.Table{"x-dead-letter-queue": false})
	other, own := x.queue("other", nil), x.queue("q.own", amqp.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "other"})
	x.govern(policy.Definition{"dead-letter-queue": true})
	reject := func(q *broker.Queue, body string) {
		t.Helper()
		x.publish("", q.Name(), body, "", nil)
		m, ok := x.get(q, false)
		require.True(t, ok)
		q.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	}
	dead, err := x.vh.Queue(deadLetters)
	require.NoError(t, err)
	reject(q, "1")
	assert.Equal(t, 1, x.ready(dead))
	reject(own, "2")
	assert.Equal(t, []string{"2"}, x.drain(other))
	reject(no, "3")
	_, err = x.vh.Queue("q.no/$deadletterqueue")
	assert.EqualValues(t, 404, code(err), "the argument says no")
	later := x.queue("q.later", nil)
	reject(later, "4")
	ofLater, err := x.vh.Queue("q.later/$deadletterqueue")
	require.NoError(t, err, "one that is declared later has it too")
	assert.Equal(t, 1, x.ready(ofLater))
	_, err = x.vh.Queue(deadLetters + "/$deadletterqueue")
	assert.EqualValues(t, 404, code(err), "and a dead-letter queue has none")
	_, err = x.vh.DeleteQueue(nil, deadLetters, false, false)
	assert.EqualValues(t, 403, code(err))
	x.queue(strings.Repeat("q", 250), nil) // too long a name for it

	x.govern(policy.Definition{"dead-letter-queue": true, "dead-letter-exchange": "", "dead-letter-routing-key": "other"})
	reject(q, "5")
	assert.Equal(t, []string{"5"}, x.drain(other), "a dead-letter exchange goes before it")

	x.clear("p")
	reject(q, "6")
	assert.Equal(t, []string{"1"}, x.drain(dead), "it stays with what is in it, and gets no more")
	_, err = x.vh.DeleteQueue(nil, "q.later/$deadletterqueue", false, false)
	require.NoError(t, err, "it may be deleted by itself now")
	_, err = x.vh.DeleteQueue(nil, "q", false, false)
	require.NoError(t, err)
	_, err = x.vh.Queue(deadLetters)
	assert.EqualValues(t, 404, code(err), "and goes with its queue")
	_, err = x.vh.Queue(broker.UndeliverableQueue)
	assert.EqualValues(t, 404, code(err), "nothing was parked")
}

// TestParkedMessagesHaveNoDeadLetterQueue, whatever policies say.
func TestParkedMessagesHaveNoDeadLetterQueue(t *testing.T) {
	x := newBench(t, broker.Options{})
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: ".*", Definition: policy.Definition{"dead-letter-queue": true}})
	_, err := x.vh.DeclareQueue(nil, broker.UndeliverableQueue, broker.QueueDeclare{Durable: true})
	require.NoError(t, err)
	assert.Len(t, x.vh.Queues(), 1)
}

func TestDeadLetterQueueOfAPolicyOutlivesARestart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openBench(t, o)
	q := x.durable("q", nil)
	x.govern(policy.Definition{"dead-letter-queue": true})
	x.publishPersistent("", "q", "m", "")
	m, _ := x.get(q, false)
	q.Settle(broker.Reject, []queue.Seq{m.seq}, nil)
	x.commit()
	x = restarted(t, o, x.b)
	dead, err := x.vh.Queue(deadLetters)
	require.NoError(t, err)
	assert.Equal(t, []string{"m"}, x.drain(dead))
	_, err = x.vh.DeleteQueue(nil, deadLetters, false, false)
	assert.EqualValues(t, 403, code(err))
	require.NoError(t, x.b.Close())
}

// TestDeadLetterQueueOfAPolicyIsMadeByAStart, if a crash came between the two.
func TestDeadLetterQueueOfAPolicyIsMadeByAStart(t *testing.T) {
	o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
	x := openBench(t, o)
	x.durable("q", nil)
	require.NoError(t, x.vh.SetLimits(access.Limits{access.MaxQueues: 1}))
	x.govern(policy.Definition{"dead-letter-queue": true})
	_, err := x.vh.Queue(deadLetters)
	require.EqualValues(t, 404, code(err), "there was no room for it")
	_, err = x.vh.DeclareQueue(nil, "q2", broker.QueueDeclare{Durable: true})
	require.EqualValues(t, 406, code(err))
	require.NoError(t, x.vh.SetLimits(nil))
	for range 2 {
		x = restarted(t, o, x.b)
		_, err = x.vh.Queue(deadLetters)
		require.NoError(t, err)
		assert.Len(t, x.vh.Queues(), 2)
	}
	require.NoError(t, x.b.Close())
}

// TestTTLOfAnExchangeByPolicy: only where the policy is for exchanges and nothing else.
func TestTTLOfAnExchangeByPolicy(t *testing.T) {
	x := newBench(t, broker.Options{})
	q := x.queue("q", nil)
	require.NoError(t, x.vh.DeclareExchange("x", broker.ExchangeDeclare{Kind: "fanout"}))
	require.NoError(t, x.vh.DeclareExchange("x.own", broker.ExchangeDeclare{Kind: "fanout", Args: amqp.Table{"x-message-ttl": int32(2000)}}))
	for _, name := range []string{"x", "x.own"} {
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: name, Destination: "q"}))
	}
	ttl := func(exchange string) time.Duration {
		t.Helper()
		before := deadline.At(time.Now())
		x.publish(exchange, "", "m", "", nil)
		refs := x.deadlines()
		x.drain(q)
		if len(refs) == 0 {
			return 0
		}
		return refs[0].Deadline.Sub(before)
	}
	near := func(want, got time.Duration) {
		t.Helper()
		assert.InDelta(t, want, got, float64(500*time.Millisecond))
	}
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: "^x", Definition: policy.Definition{"message-ttl": int64(1000)}})
	near(0, ttl("x"))
	x.policy(policy.User, policy.Policy{Name: "p", Pattern: "^x", ApplyTo: policy.Exchanges, Definition: policy.Definition{"message-ttl": int64(60_000)}})
	near(time.Minute, ttl("x"))
	near(2*time.Second, ttl("x.own"))
	x.policy(policy.Operator, policy.Policy{Name: "o", Pattern: "^x", ApplyTo: policy.Exchanges, Definition: policy.Definition{"message-ttl": int64(30_000)}})
	near(30*time.Second, ttl("x"))
	_, _, effective, _ := x.vh.ExchangePolicies("x")
	assert.Equal(t, policy.Definition{"message-ttl": int64(30_000)}, effective)
	_, err := x.vh.ClearPolicy(policy.Operator, "o")
	require.NoError(t, err)
	x.clear("p")
	near(0, ttl("x"))
	near(2*time.Second, ttl("x.own"))
}

func TestOperatorPoliciesBoundIdlenessAndDeliveries(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *bench) {
		q := x.queue("q", amqp.Table{"x-auto-delete-on-idle": int64(3_600_000)})
		x.policy(policy.Operator, policy.Policy{Name: "o", Pattern: "q", Definition: policy.Definition{"auto-delete-on-idle": int64(300_000), "max-delivery-count": int64(2)}})
		x.publish("", "q", "m", "", nil)
		assert.Equal(t, 2, x.failed(q, 9))
		after(5*time.Minute + time.Second)
		assert.False(t, x.exists("q"))
		_, err := x.vh.SetPolicy(policy.Operator, policy.Policy{Name: "o", Pattern: "q", Definition: policy.Definition{"lock-duration": int64(1000)}})
		assert.ErrorContains(t, err, "not recognised")
	})
}
