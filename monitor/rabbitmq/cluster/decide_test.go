package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	rabbit310 = Server{Product: "RabbitMQ", Version: "3.10.8"}
	rabbit40  = Server{Product: "RabbitMQ", Version: "4.0.5"}
	rabbit43  = Server{Product: "RabbitMQ", Version: "4.3.6"}
)

func TestDecide(t *testing.T) {
	keep, observe, off, vouched, large := defaultRule(), defaultRule(), defaultRule(), defaultRule(), defaultRule()
	keep.Mode, observe.Mode, off.Mode, vouched.Mode, large.Mode = Keep, Observe, Off, Keep, Keep
	vouched.Assume, large.Budget.Messages = Quorum, maxQuorum
	type args = map[string]any
	queue := func(kind QueueType, change func(*Queue)) Queue {
		q := Queue{Name: "q", Type: kind, Durable: true, State: "running"}
		if change != nil {
			change(&q)
		}
		return q
	}
	with := func(kind QueueType, a args) Queue { return queue(kind, func(q *Queue) { q.Arguments = a }) }
	policy := func(kind QueueType, a args) Queue { return queue(kind, func(q *Queue) { q.Policy = a }) }

	for _, c := range []struct {
		name    string
		q       Queue
		rule    Rule
		server  Server
		seen    TTLStats
		verdict Verdict
		code    Code
	}{
		{"plain quorum", queue(Quorum, nil), keep, rabbit310, TTLStats{}, Kept, ByRule},
		{"plain classic", queue(Classic, nil), keep, rabbit43, TTLStats{}, Kept, ByRule},
		{"observed", queue(Quorum, nil), observe, rabbit310, TTLStats{}, Observed, ByRule},
		{"observed though refused", with(Stream, nil), observe, rabbit310, TTLStats{}, Observed, ByRule},
		{"off", queue(Quorum, nil), off, rabbit310, TTLStats{}, Unwatched, ByRule},
		{"priorities", with(Classic, args{"x-max-priority": int64(5)}), keep, rabbit310, TTLStats{}, Kept, ByRule},
		{"at-least-once", with(Quorum, args{"x-dead-letter-strategy": "at-least-once"}), keep, rabbit310, TTLStats{}, Kept, ByRule},

		{"one TTL", with(Classic, args{"x-message-ttl": int64(1000)}), keep, rabbit310, TTLStats{}, Exact, UniformTTL},
		{"one TTL by policy, and a lower one before", policy(Quorum, args{"message-ttl": int64(7_200_000)}), keep, rabbit310, TTLStats{Messages: 201, Expiring: 201, Least: 2000, Most: 3_600_000}, Kept, ByRule},
		{"one TTL by policy", policy(Quorum, args{"message-ttl": int64(1000)}), keep, rabbit310, TTLStats{Messages: 1000, Expiring: 500, Least: 1000}, Exact, UniformTTL},
		{"one TTL and shorter ones", with(Quorum, args{"x-message-ttl": int64(1000)}), keep, rabbit310, TTLStats{Messages: 1000, Expiring: 500, Shorter: 500}, Kept, ByRule},
		{"few deadlines", queue(Quorum, nil), keep, rabbit310, TTLStats{Messages: 1000, Expiring: 100}, NotWorth, FewDeadlines},
		{"few messages seen", queue(Quorum, nil), keep, rabbit310, TTLStats{Messages: 99}, Kept, ByRule},

		{"stream", queue(Stream, nil), keep, rabbit310, TTLStats{}, Refused, IsStream},
		{"unknown type", queue("rabbit_mqtt_qos0_queue", nil), keep, rabbit43, TTLStats{}, Refused, NoSuchType},
		{"federation's own", with(Classic, args{"x-internal-purpose": "federation"}), keep, rabbit310, TTLStats{}, Refused, IsInternal},
		{"exclusive", queue(Classic, func(q *Queue) { q.Exclusive = true }), keep, rabbit310, TTLStats{}, Refused, IsExclusive},
		{"auto-delete", queue(Classic, func(q *Queue) { q.AutoDelete = true }), keep, rabbit310, TTLStats{}, Refused, IsAutoDelete},
		{"x-expires", with(Classic, args{"x-expires": int64(1000)}), keep, rabbit310, TTLStats{}, Refused, HasExpires},
		{"expires by policy", policy(Quorum, args{"expires": int64(1000)}), keep, rabbit310, TTLStats{}, Refused, HasExpires},
		{"single active consumer", with(Quorum, args{"x-single-active-consumer": true}), keep, rabbit310, TTLStats{}, Refused, HasSingleActive},
		{"max-length", with(Classic, args{"x-max-length": int64(10)}), keep, rabbit310, TTLStats{}, Refused, DropsHead},
		{"max-length-bytes by policy", policy(Quorum, args{"max-length-bytes": int64(10)}), keep, rabbit310, TTLStats{}, Refused, DropsHead},
		{"reject-publish", with(Classic, args{"x-max-length": int64(10), "x-overflow": "reject-publish"}), keep, rabbit310, TTLStats{}, Refused, RejectsPublish},
		{"reject-publish-dlx", policy(Classic, args{"max-length": int64(10), "overflow": "reject-publish-dlx"}), keep, rabbit310, TTLStats{}, Refused, RejectsPublish},
		{"delayed retry", with(Quorum, args{"x-delayed-retry-type": "all", "x-delayed-retry-min": int64(1000)}), keep, rabbit43, TTLStats{}, Refused, DelaysRetries},
		{"delayed retry without a wait", with(Quorum, args{"x-delayed-retry-type": "all"}), keep, rabbit43, TTLStats{}, Kept, ByRule},
		{"delayed retry by policy", queue(Quorum, func(q *Queue) {
			q.Arguments, q.Policy = args{"x-delayed-retry-type": "disabled", "x-delayed-retry-min": int64(1)}, args{"delayed-retry-type": "all"}
		}), keep, rabbit43, TTLStats{}, Refused, DelaysRetries},
		{"delayed retry disabled", with(Quorum, args{"x-delayed-retry-type": "disabled"}), keep, rabbit43, TTLStats{}, Kept, ByRule},
		{"a delay queue that somebody looks into", queue(Quorum, func(q *Queue) { q.Polled = true; q.Policy = map[string]any{"dead-letter-exchange": "x"} }), Rule{Pattern: "*", Mode: Delay, Budget: keep.Budget}, rabbit310, TTLStats{}, Kept, ByRule},
		{"polled now and then", queue(Classic, func(q *Queue) { q.Polled = true }), keep, rabbit310, TTLStats{}, Refused, IsPolled},
		{"polled long ago", queue(Classic, func(q *Queue) { q.Gets = 1 }), keep, rabbit310, TTLStats{}, Kept, ByRule},
		{"exclusive consumer", queue(Classic, func(q *Queue) { q.Attached = []Consumer{{Tag: "x", Exclusive: true}} }), keep, rabbit310, TTLStats{}, Refused, ExclusiveConsumer},
		{"consumers", queue(Classic, func(q *Queue) { q.Attached, q.Consumers = []Consumer{{Tag: "x"}}, 1 }), keep, rabbit310, TTLStats{}, Kept, ByRule},
		{"limit 3 on 3.10", with(Quorum, args{"x-delivery-limit": int64(3)}), keep, rabbit310, TTLStats{}, Refused, LowDeliveryLimit},
		{"limit -1 on 3.10", with(Quorum, args{"x-delivery-limit": int64(-1)}), keep, rabbit310, TTLStats{}, Refused, LowDeliveryLimit},
		{"limit -1 on 4.0", with(Quorum, args{"x-delivery-limit": int64(-1)}), keep, rabbit40, TTLStats{}, Kept, ByRule},
		{"limit -1 on 4.0 by policy, where the argument counts", queue(Quorum, func(q *Queue) {
			q.Arguments, q.Policy = args{"x-delivery-limit": int64(3)}, args{"delivery-limit": int64(-1)}
		}), keep, rabbit40, TTLStats{}, Refused, LowDeliveryLimit},
		{"limit 3 on 4.3", with(Quorum, args{"x-delivery-limit": int64(3)}), keep, rabbit43, TTLStats{}, Kept, ByRule},
		{"limit 20 on 4.0", queue(Quorum, nil), keep, rabbit40, TTLStats{}, Kept, ByRule},
		{"limit 3 by policy", policy(Quorum, args{"delivery-limit": int64(3)}), keep, rabbit310, TTLStats{}, Refused, LowDeliveryLimit},
		{"too many for classic", queue(Classic, func(q *Queue) { q.Ready = MaxClassic + 1 }), large, rabbit310, TTLStats{}, Refused, TooMany},
		{"many on quorum", queue(Quorum, func(q *Queue) { q.Ready = MaxClassic + 1 }), large, rabbit310, TTLStats{}, Kept, ByRule},
		{"too many for the budget", queue(Quorum, func(q *Queue) { q.Ready, q.Unacked = defaultMessages, 1 }), keep, rabbit310, TTLStats{}, Refused, TooMany},
		{"minority", queue(Quorum, func(q *Queue) { q.State = "minority" }), keep, rabbit310, TTLStats{}, Refused, NotRunning},
		{"another broker", queue(Classic, nil), keep, Server{Product: "LavinMQ", Version: "2.4.0"}, TTLStats{}, Refused, OtherVersion},
		{"an old broker", queue(Classic, nil), keep, Server{Product: "RabbitMQ", Version: "3.8.2"}, TTLStats{}, Refused, OtherVersion},

		{"no management API", queue(UnknownType, func(q *Queue) { q.Unknown = UnknownArguments | UnknownPolicy }), keep, rabbit310, TTLStats{}, Refused, CannotBeKnown},
		{"no management API, vouched for", queue(UnknownType, func(q *Queue) { q.Unknown = UnknownArguments | UnknownPolicy }), vouched, rabbit310, TTLStats{}, Kept, ByRule},
		{"policy not known yet", queue(Quorum, func(q *Queue) { q.Unknown = UnknownPolicy }), keep, rabbit310, TTLStats{}, Refused, CannotBeKnown},
		{"locked, though vouched for", queue(UnknownType, func(q *Queue) { q.Unknown, q.Exclusive = UnknownArguments, true }), vouched, rabbit310, TTLStats{}, Refused, IsExclusive},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(&c.q, c.rule, c.server, c.seen, true)
			require.Equal(t, c.verdict, d.Verdict, "%+v", d)
			require.Equal(t, c.code, d.Code)
			require.NotEmpty(t, d.Reason)
			if d.Verdict == Refused && d.Code != IsInternal {
				require.NotEmpty(t, d.Instead)
			}
		})
	}
}

// TestMindsConsumersOfOthers: Curfew does not take its own consumers for an application's.
func TestMindsConsumersOfOthers(t *testing.T) {
	keep := defaultRule()
	keep.Mode = Keep
	q := Queue{Name: "q", Type: Quorum, State: "running", Policy: map[string]any{"dead-letter-exchange": "x"}, Consumers: 1, Attached: []Consumer{{Tag: "curfew.keeper.a.0"}}}
	require.Empty(t, Decide(&q, keep, rabbit310, TTLStats{}, true).Mind)
	q.Consumers, q.Attached = 2, append(q.Attached, Consumer{Tag: "worker"})
	require.Equal(t, []string{"Consumers of applications: 1. As long as one is attached, Curfew stands aside."}, Decide(&q, keep, rabbit310, TTLStats{}, true).Mind)
}

func TestEffectiveSettings(t *testing.T) {
	q := Queue{Type: Quorum,
		Arguments: map[string]any{"x-message-ttl": int64(5000), "x-dead-letter-exchange": "arg", "x-delivery-limit": int64(9)},
		Policy:    map[string]any{"message-ttl": int64(3000), "dead-letter-exchange": "policy", "overflow": "reject-publish", "delivery-limit": int64(7)}}
	ttl, ok := q.TTLMillis()
	require.True(t, ok)
	require.EqualValues(t, 3000, ttl)
	dlx, ok := q.DeadLetterExchange()
	require.True(t, ok)
	require.Equal(t, "arg", dlx)
	require.Equal(t, "reject-publish", q.Overflow())
	limit, ok := q.DeliveryLimit(Family3)
	require.True(t, ok)
	require.EqualValues(t, 7, limit)
	_, ok = (&Queue{Type: Quorum}).DeliveryLimit(Family3)
	require.False(t, ok)
	limit, ok = (&Queue{Type: Quorum}).DeliveryLimit(Family40)
	require.True(t, ok)
	require.EqualValues(t, 20, limit)

	for _, c := range []struct {
		argument, policy any
		want             int64
		limited          bool
	}{
		{int64(5), int64(-1), 5, true}, {int64(-1), int64(7), 7, true}, {nil, int64(-1), 0, false}, {int64(-1), nil, 0, false},
		{int64(-1), int64(-1), 0, false}, {int64(0), int64(-1), 0, true}, {int64(5), int64(3), 3, true},
	} {
		q := Queue{Type: Quorum, Arguments: map[string]any{"x-delivery-limit": c.argument}, Policy: map[string]any{"delivery-limit": c.policy}}
		limit, limited := q.DeliveryLimit(Family43)
		require.Equal(t, c.want, limit, c)
		require.Equal(t, c.limited, limited, c)
	}
	for _, kind := range []QueueType{Quorum, Classic} {
		q = Queue{Type: kind, Arguments: map[string]any{"x-overflow": "drop-head"}, Policy: map[string]any{"overflow": "reject-publish"}}
		require.Equal(t, kind == Quorum, q.Overflow() == "reject-publish", "the policy comes first in quorum queues alone")
	}
}

func TestUnknownSays(t *testing.T) {
	require.Equal(t, "its type, flags and arguments; who consumes", (UnknownArguments | UnknownConsumers).String())
	require.Empty(t, Unknown(0).String())
}
