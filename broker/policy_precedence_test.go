package broker_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
)

// TestPrecedenceOfAQueue: an argument goes before a policy, and that before the broker's setting.
func TestPrecedenceOfAQueue(t *testing.T) {
	const queueTTL, own = 100, 10_000
	for _, c := range []struct {
		broker           policy.Precedence
		policy, argument string
		want             int64
	}{
		{policy.Lower, "", "", queueTTL},
		{policy.Lower, "message", "", own},
		{policy.Lower, "message", "min", queueTTL},
		{policy.Lower, "", "message", own},
		{policy.MessageFirst, "", "", own},
		{policy.MessageFirst, "min", "", queueTTL},
		{policy.MessageFirst, "min", "message", own},
		{policy.MessageFirst, "", "min", queueTTL},
	} {
		synctest.Test(t, func(t *testing.T) {
			x := newTestBroker(t, broker.Options{TTLPrecedence: c.broker})
			args := amqp.Table{"x-message-ttl": queueTTL}
			if c.argument != "" {
				args["x-ttl-precedence"] = c.argument
			}
			x.queue("q", args)
			if c.policy != "" { // every queue of the virtual host
				_, err := x.vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: ".*", Definition: policy.Definition{"ttl-precedence": c.policy}})
				require.NoError(t, err)
			}
			x.publish("", "q", "m", "10000", nil)
			ref := x.one()
			assert.Equal(t, c.want, ref.Deadline.Sub(x.b.Now()).Milliseconds(), "%+v", c)
			ttl, _ := x.b.Deadlines().TimeToLive(ref)
			assert.Equal(t, deadline.Millis(c.want), ttl, "%+v", c)
		})
	}
}

func TestPrecedenceThatIsNone(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for value, want := range map[any]string{
		"max":    `PRECONDITION_FAILED - invalid arg 'x-ttl-precedence' for queue 'q' in vhost '/': "expected min or message, got 'max'"`,
		"":       `PRECONDITION_FAILED - invalid arg 'x-ttl-precedence' for queue 'q' in vhost '/': "expected min or message, got ''"`,
		int32(1): "PRECONDITION_FAILED - invalid arg 'x-ttl-precedence' for queue 'q' in vhost '/': {unacceptable_type,signedint}",
	} {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{"x-ttl-precedence": value}})
		assert.EqualValues(t, 406, code(err))
		assert.Equal(t, want, text(err))
	}
	x.queue("q", amqp.Table{"x-ttl-precedence": "min"})
	_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	assert.Equal(t, "PRECONDITION_FAILED - inequivalent arg 'x-ttl-precedence' for queue 'q' in vhost '/': received none but current is the value 'min' of type 'longstr'", text(err))
}

func TestBacklogLeavesTheMessagesOwnInAQueueThatSaysSo(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	x.queue("q", amqp.Table{"x-ttl-precedence": "message"})
	x.queue("other", nil)
	for _, q := range []string{"q", "other"} {
		x.publish("", q, "own", "3600000", nil)
	}
	would, err := x.vh.Policies.Preview(policy.User, policy.Policy{Name: "p", Pattern: "", Definition: policy.Definition{"message-ttl": int64(5)}})
	require.NoError(t, err)
	require.Equal(t, broker.BacklogEffect{Queues: 2, Earlier: 1, Names: []string{"other", "q"}}, would)
}

// TestServiceBusArgumentsThatAreNotAboutExpiry are known, too.
func TestServiceBusArgumentsThatAreNotAboutExpiry(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for arg, want := range map[string]string{
		"x-requires-session":                  "sessions are not supported",
		"x-session-id":                        "sessions are not supported",
		"x-requires-duplicate-detection":      "duplicate detection is not supported",
		"x-enable-deferral":                   "deferral is not supported",
		"x-forward-to":                        "auto-forwarding is not supported",
		"x-auto-forward-to":                   "auto-forwarding is not supported",
		"x-forward-dead-lettered-messages-to": "auto-forwarding is not supported",
	} {
		_, err := x.vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: amqp.Table{arg: "other"}})
		assert.EqualValues(t, 406, code(err))
		assert.Equal(t, "PRECONDITION_FAILED - invalid arg '"+arg+`' for queue 'q' in vhost '/': "`+want+`"`, text(err))
	}
	x.queue("q", amqp.Table{"x-requires-session": false})
}
