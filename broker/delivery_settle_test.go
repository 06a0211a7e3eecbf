package broker_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

func TestDeliveryLimit(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.quorum("q", amqp.Table{"x-delivery-limit": int32(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dlq"})
	dlq := x.queue("dlq", nil)
	x.publish("", "q", "poison", "", nil)
	for range 2 {
		m, ok := x.get(q, false)
		require.True(t, ok)
		q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
	}
	_, ok := x.get(q, true)
	assert.False(t, ok)
	m, ok := x.get(dlq, true)
	require.True(t, ok)
	assert.Equal(t, "delivery_limit", m.properties.Headers["x-first-death-reason"])
}

func TestRequeueRespectsMaxLength(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", amqp.Table{"x-max-length": int32(1)})
	x.publish("", "q", "0", "", nil)
	m, _ := x.get(q, false)
	x.publish("", "q", "1", "", nil)
	q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
	ready, _, _ := q.Messages.Counts()
	assert.Equal(t, 1, ready)
}

// failed gets the message at the head of q over and over and requeues it, and returns how
// often it came.
func (x *testBroker) failed(q *broker.Queue, most int) (deliveries int) {
	for deliveries < most {
		m, ok := x.get(q, false)
		if !ok {
			break
		}
		deliveries++
		q.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
	}
	return deliveries
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
			x := newTestBroker(t, broker.Options{})
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
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("q", amqp.Table{"x-lock-duration": int32(1000), "x-max-delivery-count": int32(3), "x-dead-letter-queue": true})
		dead, err := x.vh.Queues.Get(deadLetters)
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
		dead.Messages.Settle(broker.Requeue, []queue.Seq{m.seq}, nil)
		assert.Equal(t, 20, x.failed(dead, 20), "nothing is dead-lettered from a dead-letter queue")
	})
}

func TestMaxDeliveryCountOutlivesARestart(t *testing.T) {
	for name, byPolicy := range map[string]bool{"argument": false, "policy": true} {
		t.Run(name, func(t *testing.T) {
			o := broker.Options{Store: store.Options{Dir: t.TempDir()}}
			x := openTestBroker(t, o)
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
			q, err := x.vh.Queues.Get("q")
			require.NoError(t, err)
			require.Equal(t, 1, x.failed(q, 9))
			dead, err := x.vh.Queues.Get(deadLetters)
			require.NoError(t, err)
			assert.Equal(t, []string{"m"}, x.drain(dead))
			require.NoError(t, x.b.Close())
		})
	}
}
