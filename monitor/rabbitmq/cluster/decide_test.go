package cluster

import (
	"testing"

	"curfew/broker/deadline"

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
	queue := func(kind Type, change func(*Queue)) Queue {
		q := Queue{VHost: "/", Name: "q", Type: kind, Durable: true, State: "running"}
		if change != nil {
			change(&q)
		}
		return q
	}
	with := func(kind Type, a args) Queue { return queue(kind, func(q *Queue) { q.Arguments = a }) }
	policy := func(kind Type, a args) Queue { return queue(kind, func(q *Queue) { q.Policy = a }) }

	for _, c := range []struct {
		name    string
		q       Queue
		rule    Rule
		server  Server
		seen    Seen
		verdict Verdict
		code    Code
	}{
		{"plain quorum", queue(Quorum, nil), keep, rabbit310, Seen{}, Kept, ByRule},
		{"plain classic", queue(Classic, nil), keep, rabbit43, Seen{}, Kept, ByRule},
		{"observed", queue(Quorum, nil), observe, rabbit310, Seen{}, Observed, ByRule},
		{"observed though refused", with(Stream, nil), observe, rabbit310, Seen{}, Observed, ByRule},
		{"off", queue(Quorum, nil), off, rabbit310, Seen{}, Unwatched, ByRule},
		{"priorities", with(Classic, args{"x-max-priority": int64(5)}), keep, rabbit310, Seen{}, Kept, ByRule},
		{"at-least-once", with(Quorum, args{"x-dead-letter-strategy": "at-least-once"}), keep, rabbit310, Seen{}, Kept, ByRule},

		{"one TTL", with(Classic, args{"x-message-ttl": int64(1000)}), keep, rabbit310, Seen{}, Exact, UniformTTL},
		{"one TTL by policy", policy(Quorum, args{"message-ttl": int64(1000)}), keep, rabbit310, Seen{Messages: 1000, Expiring: 500}, Exact, UniformTTL},
		{"one TTL and shorter ones", with(Quorum, args{"x-message-ttl": int64(1000)}), keep, rabbit310, Seen{Messages: 1000, Expiring: 500, Shorter: 500}, Kept, ByRule},
		{"few deadlines", queue(Quorum, nil), keep, rabbit310, Seen{Messages: 1000, Expiring: 100}, NotWorth, FewDeadlines},
		{"few messages seen", queue(Quorum, nil), keep, rabbit310, Seen{Messages: 99}, Kept, ByRule},

		{"stream", queue(Stream, nil), keep, rabbit310, Seen{}, Refused, NoStream},
		{"unknown type", queue("rabbit_mqtt_qos0_queue", nil), keep, rabbit43, Seen{}, Refused, NoSuchType},
		{"federation's own", with(Classic, args{"x-internal-purpose": "federation"}), keep, rabbit310, Seen{}, Refused, IsInternal},
		{"exclusive", queue(Classic, func(q *Queue) { q.Exclusive = true }), keep, rabbit310, Seen{}, Refused, IsExclusive},
		{"auto-delete", queue(Classic, func(q *Queue) { q.AutoDelete = true }), keep, rabbit310, Seen{}, Refused, IsAutoDelete},
		{"x-expires", with(Classic, args{"x-expires": int64(1000)}), keep, rabbit310, Seen{}, Refused, HasExpires},
		{"expires by policy", policy(Quorum, args{"expires": int64(1000)}), keep, rabbit310, Seen{}, Refused, HasExpires},
		{"single active consumer", with(Quorum, args{"x-single-active-consumer": true}), keep, rabbit310, Seen{}, Refused, HasSingleActive},
		{"max-length", with(Classic, args{"x-max-length": int64(10)}), keep, rabbit310, Seen{}, Refused, DropsHead},
		{"max-length-bytes by policy", policy(Quorum, args{"max-length-bytes": int64(10)}), keep, rabbit310, Seen{}, Refused, DropsHead},
		{"reject-publish", with(Classic, args{"x-max-length": int64(10), "x-overflow": "reject-publish"}), keep, rabbit310, Seen{}, Refused, RejectsPublish},
		{"reject-publish-dlx", policy(Classic, args{"max-length": int64(10), "overflow": "reject-publish-dlx"}), keep, rabbit310, Seen{}, Refused, RejectsPublish},
		{"delayed retry", with(Quorum, args{"x-delayed-retry-type": "all"}), keep, rabbit43, Seen{}, Refused, DelaysRetries},
		{"delayed retry disabled", with(Quorum, args{"x-delayed-retry-type": "disabled"}), keep, rabbit43, Seen{}, Kept, ByRule},
		{"polled", queue(Classic, func(q *Queue) { q.GetRate = 0.2 }), keep, rabbit310, Seen{}, Refused, IsPolled},
		{"polled now and then", queue(Classic, func(q *Queue) { q.Polled = true }), keep, rabbit310, Seen{}, Refused, IsPolled},
		{"polled long ago", queue(Classic, func(q *Queue) { q.Gets = 1 }), keep, rabbit310, Seen{}, Kept, ByRule},
		{"exclusive consumer", queue(Classic, func(q *Queue) { q.Attached = []Consumer{{Tag: "x", Exclusive: true}} }), keep, rabbit310, Seen{}, Refused, ExclusiveConsumer},
		{"consumers", queue(Classic, func(q *Queue) { q.Attached, q.Consumers = []Consumer{{Tag: "x"}}, 1 }), keep, rabbit310, Seen{}, Kept, ByRule},
		{"limit 3 on 3.10", with(Quorum, args{"x-delivery-limit": int64(3)}), keep, rabbit310, Seen{}, Refused, LowDeliveryLimit},
		{"limit -1 on 3.10", with(Quorum, args{"x-delivery-limit": int64(-1)}), keep, rabbit310, Seen{}, Refused, LowDeliveryLimit},
		{"limit -1 on 4.0", with(Quorum, args{"x-delivery-limit": int64(-1)}), keep, rabbit40, Seen{}, Kept, ByRule},
		{"limit 3 on 4.3", with(Quorum, args{"x-delivery-limit": int64(3)}), keep, rabbit43, Seen{}, Kept, ByRule},
		{"limit 20 on 4.0", queue(Quorum, nil), keep, rabbit40, Seen{}, Kept, ByRule},
		{"limit 3 by policy", policy(Quorum, args{"delivery-limit": int64(3)}), keep, rabbit310, Seen{}, Refused, LowDeliveryLimit},
		{"too many for classic", queue(Classic, func(q *Queue) { q.Ready = MaxClassic + 1 }), large, rabbit310, Seen{}, Refused, TooMany},
		{"many on quorum", queue(Quorum, func(q *Queue) { q.Ready = MaxClassic + 1 }), large, rabbit310, Seen{}, Kept, ByRule},
		{"too many for the budget", queue(Quorum, func(q *Queue) { q.Ready, q.Unacked = defaultMessages, 1 }), keep, rabbit310, Seen{}, Refused, TooMany},
		{"minority", queue(Quorum, func(q *Queue) { q.State = "minority" }), keep, rabbit310, Seen{}, Refused, NotRunning},
		{"another broker", queue(Classic, nil), keep, Server{Product: "LavinMQ", Version: "2.4.0"}, Seen{}, Refused, OtherVersion},
		{"an old broker", queue(Classic, nil), keep, Server{Product: "RabbitMQ", Version: "3.8.2"}, Seen{}, Refused, OtherVersion},

		{"no management API", queue(UnknownType, func(q *Queue) { q.Unknown = UnknownArguments | UnknownPolicy }), keep, rabbit310, Seen{}, Refused, CannotBeKnown},
		{"no management API, vouched for", queue(UnknownType, func(q *Queue) { q.Unknown = UnknownArguments | UnknownPolicy }), vouched, rabbit310, Seen{}, Kept, ByRule},
		{"policy not known yet", queue(Quorum, func(q *Queue) { q.Unknown = UnknownPolicy }), keep, rabbit310, Seen{}, Refused, CannotBeKnown},
		{"locked, though vouched for", queue(UnknownType, func(q *Queue) { q.Unknown, q.Exclusive = UnknownArguments, true }), vouched, rabbit310, Seen{}, Refused, IsExclusive},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(&c.q, c.rule, c.server, c.seen)
			require.Equal(t, c.verdict, d.Verdict, "%+v", d)
			require.Equal(t, c.code, d.Code)
			require.NotEmpty(t, d.Reason)
			if d.Verdict == Refused && d.Code != IsInternal {
				require.NotEmpty(t, d.Instead)
			}
		})
	}
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
}

func TestUnknownSays(t *testing.T) {
	require.Equal(t, "its type, flags and arguments; who consumes", (UnknownArguments | UnknownConsumers).String())
	require.Empty(t, Unknown(0).String())
}

func TestSeen(t *testing.T) {
	var s Seen
	for _, ttl := range []deadline.Millis{-1, 500, 3000, 0} {
		s.Add(ttl, 1000)
	}
	require.Equal(t, Seen{Messages: 4, Expiring: 3, Shorter: 2, Least: 0, Most: 3000}, s)
}
