package dashboard

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/incident"
	"curfew/monitor/rabbitmq"
	"curfew/monitor/rabbitmq/observe"
)

// fakeRabbitMQ has what a test says.
type fakeRabbitMQ struct {
	status rabbitmq.Status
}

func (f *fakeRabbitMQ) Status() rabbitmq.Status { return f.status }

var _ RabbitMQ = (*rabbitmq.Primary)(nil)

func TestRabbitMQPage(t *testing.T) {
	p50, p99 := 3.0, 12.0
	f := &fakeRabbitMQ{status: rabbitmq.Status{Address: "amqp://u@h/shop", VHost: "shop", Members: []string{"one", "two"}, Redis: "down", Observer: "two",
		Reasons: []string{"Redis has not answered"}, Queues: []rabbitmq.Queue{
			{Queue: "retry", Type: "quorum", Mode: "keep", State: "keeping", Keeper: "one", Here: true, Held: 1234, Expired: 7, P50: &p50, P99: &p99},
			{Queue: "far", Type: "quorum", Mode: "keep", State: "observing", Keeper: "two"},
			{Queue: "told", Type: "quorum", Mode: "retry", State: "keeping", Keeper: "two", Reported: true, Held: 4321, Expired: 98765},
			{Queue: "spent<b>", Type: "quorum", Mode: "keep", State: "refused", Reason: "it came again"},
			{Queue: "limited", Mode: "keep", State: "refused", Reason: "It has a maximal length.", Instead: "Take it off.", Code: "max_length"},
			{Queue: "uniform", Mode: "keep", State: "exact", Reason: "All have one TTL."},
			{Queue: "orders", Mode: "observe", State: "observed", Observed: &observe.State{Tapped: true, Ready: 5, Overdue: 2, Counts: observe.Counts{Missed: 9}}},
			{Queue: "hash", Mode: "observe", State: "observed", Reason: "An exchange of another type.", Observed: &observe.State{Reason: "An exchange of another type."}},
			{Queue: "elsewhere", Mode: "observe", State: "observed"},
		}}}
	s := newSite(t)
	s.with(func(o *Options) {
		o.RabbitMQ, o.Operations = f, nil
	})
	s.logIn("root")
	page := s.get("/rabbitmq").body
	for _, want := range []string{"1,234", "4,321", "98,765", "5,555", "≤ 3 / ≤ 12", "kept elsewhere", "spent&lt;b&gt;", "It has a maximal length. Take it off.", "All have one TTL.",
		"each message", "by its totals", "An exchange of another type.", "another Curfew observes", "Redis has not answered", "one, two"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "spent<b>")

	f.status.Instance = "two"
	s.withIncidents("", func(now *incident.State) {
		now.Forecasts = []deadline.Forecast{{VHost: "shop", Queue: "orders", AtRisk: 777}}
	})
	s.logIn("root")
	require.Contains(t, s.get("/rabbitmq").body, "777", "at risk by the forecast")
}
