package broker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
)

func (x *testBroker) set(name, pattern, to string, d policy.Definition) {
	x.t.Helper()
	_, err := x.vh.Policies.Set(policy.User, policy.Policy{Name: name, Pattern: pattern, ApplyTo: to, Definition: d})
	require.NoError(x.t, err)
}

// refusal is what a publish with these headers is refused with; "": it is not.
func (x *testBroker) refusal(exchange, key string, headers amqp.Table) string {
	x.t.Helper()
	p := amqp.Properties{Headers: headers}
	_, err := x.p.Add(&broker.Publication{Exchange: []byte(exchange), RoutingKey: []byte(key), Properties: p.Append(nil)})
	x.p.Discard()
	if err == nil {
		return ""
	}
	assert.EqualValues(x.t, amqp.PreconditionFailed, code(err))
	return strings.TrimPrefix(text(err), "PRECONDITION_FAILED - ")
}

const isoMicros = "2006-01-02T15:04:05.000000"

// TestDeadlineHeader: the header that a queue's policy names is a deadline there, and nowhere else.
func TestDeadlineHeader(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		x.queue("tasks", nil)
		x.queue("copies", nil)
		require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "fanout"}))
		for _, name := range []string{"tasks", "copies"} {
			require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "x", Destination: name}))
		}
		x.set("celery", "^tasks$", policy.Queues, policy.Definition{"deadline-header": "expires"})
		in := func(d time.Duration) time.Time { return time.Now().Add(d) }
		for _, c := range []struct {
			value   any
			others  amqp.Table
			expires time.Duration // 0: never
		}{
			{in(2 * time.Second).UTC().Format(isoMicros), nil, 2 * time.Second}, // naive: UTC
			{in(2*time.Second).UTC().Format(isoMicros) + "+00:00", nil, 2 * time.Second},
			{in(2 * time.Second).In(time.FixedZone("", 5400)).Format(isoMicros + "Z0700"), nil, 2 * time.Second},
			{in(2*time.Second - 900*time.Microsecond).UTC().Format(time.RFC3339Nano), nil, 2 * time.Second}, // rounded up
			{amqp.Timestamp(in(3 * time.Second).Unix()), nil, 3 * time.Second},
			{in(700 * time.Millisecond).UnixMilli(), nil, 700 * time.Millisecond},
			{in(700 * time.Millisecond).UnixMilli(), amqp.Table{"x-expires-at": in(500 * time.Millisecond).UnixMilli()}, 500 * time.Millisecond},
			{in(300 * time.Millisecond).UnixMilli(), amqp.Table{"x-expires-at": in(500 * time.Millisecond).UnixMilli()}, 300 * time.Millisecond},
			{nil, nil, 0}, // Celery sends void for none
		} {
			headers := amqp.Table{"expires": c.value}
			for name, v := range c.others {
				headers[name] = v
			}
			x.publish("x", "", "m", "", headers)
			var found time.Duration
			for _, ref := range x.deadlines() {
				if ref.Queue == x.called("tasks").ID {
					found = time.Until(time.UnixMilli(x.b.UnixMillis(ref.Deadline)))
				} else if len(c.others) == 0 {
					t.Errorf("%v expires in copies, too", c.value)
				}
			}
			assert.Equal(t, c.expires, found, "%v", c.value)
			x.called("tasks").Messages.Purge()
			x.called("copies").Messages.Purge()
		}
		x.publish("x", "", "late", "", amqp.Table{"expires": in(-time.Second).UTC().Format(isoMicros)})
		assert.Empty(t, x.drain(x.called("tasks")), "it has expired")
		assert.Equal(t, []string{"late"}, x.drain(x.called("copies")))
		assert.Equal(t, "invalid header 'expires': expected timestamp, integer of milliseconds or a time in ISO 8601, got 'tomorrow'", x.refusal("x", "", amqp.Table{"expires": "tomorrow"}))
		assert.Equal(t, "invalid header 'expires': expected timestamp or integer of milliseconds, got bool", x.refusal("", "tasks", amqp.Table{"expires": true}))
		assert.Empty(t, x.refusal("", "copies", amqp.Table{"expires": "tomorrow"}))
	})
}

// TestDelayHeader: the header that a policy names delays what is published to the exchange, or to the queue by its name.
func TestDelayHeader(t *testing.T) {
	inBubble(t, broker.Options{}, func(x *testBroker) {
		q := x.queue("tasks", nil)
		require.NoError(t, x.vh.Exchanges.Declare("x", broker.ExchangeDeclare{Kind: "direct"}))
		require.NoError(t, x.vh.Bind(nil, broker.Binding{Source: "x", Destination: "tasks", RoutingKey: "tasks"}))
		x.publish("x", "tasks", "before the policy", "", amqp.Table{"eta": int32(1000)})
		assert.Equal(t, []string{"before the policy"}, x.drain(q))
		x.set("celery", "^(x|tasks)$", policy.All, policy.Definition{"delay-header": "eta", "deadline-header": "expires"})
		for _, exchange := range []string{"x", ""} {
			for _, value := range []func(due time.Time) any{
				func(due time.Time) any { return due.UTC().Format(isoMicros) + "+00:00" },
				func(due time.Time) any { return amqp.Timestamp(due.Unix()) },
				func(due time.Time) any { return due.UnixMilli() },
				func(time.Time) any { return int32(2000) },
				func(time.Time) any { return "2000" },
			} {
				eta := value(time.Now().Add(2 * time.Second))
				x.publish(exchange, "tasks", "m", "", amqp.Table{"eta": eta})
				after(2*time.Second - time.Millisecond)
				assert.Empty(t, x.drain(q), "%v", eta)
				after(time.Millisecond)
				assert.Equal(t, []string{"m"}, x.drain(q), "%v", eta)
			}
		}
		for _, none := range []any{nil, int32(0), int64(-5), time.Now().Add(-time.Hour).UTC().Format(isoMicros)} {
			x.publish("x", "tasks", "at once", "", amqp.Table{"eta": none})
			assert.Equal(t, []string{"at once"}, x.drain(q), "%v", none)
		}
		x.publish("x", "tasks", "both", "", amqp.Table{"eta": int32(1000), "expires": time.Now().Add(3 * time.Second).UnixMilli()})
		after(time.Second)
		refs := x.deadlines()
		require.Len(t, refs, 1, "the deadline counts from when it is enqueued")
		assert.Equal(t, 2*time.Second, time.Until(time.UnixMilli(x.b.UnixMillis(refs[0].Deadline))))
		assert.Equal(t, "invalid header 'eta': expected timestamp, integer of milliseconds or a time in ISO 8601, got 'soon'", x.refusal("x", "tasks", amqp.Table{"eta": "soon"}))
		assert.Equal(t, "invalid header 'expires': {value_negative,-1}", x.refusal("x", "tasks", amqp.Table{"eta": int32(1000), "expires": int32(-1)}))
		_, err := x.vh.Policies.Clear(policy.User, "celery")
		require.NoError(t, err)
		assert.Empty(t, x.refusal("x", "tasks", amqp.Table{"eta": "soon"}))
	})
}

func TestHeaderNamesInPolicies(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	for _, c := range []struct {
		to         string
		definition policy.Definition
		problem    string
	}{
		{policy.Queues, policy.Definition{"deadline-header": ""}, "<<>> is not a valid name of a header"},
		{policy.Queues, policy.Definition{"deadline-header": int64(5)}, "5 is not a valid name of a header"},
		{policy.Exchanges, policy.Definition{"deadline-header": "expires"}, "deadline-header is not a setting of exchanges"},
		{policy.Exchanges, policy.Definition{"delay-header": true}, "true is not a valid name of a header"},
	} {
		_, err := x.vh.Policies.Set(policy.User, policy.Policy{Name: "p", Pattern: ".", ApplyTo: c.to, Definition: c.definition})
		assert.ErrorContains(t, err, c.problem)
	}
}
