package dashboard

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/operate"
	"curfew/monitor/changes"
	"curfew/monitor/rabbitmq"
	"curfew/monitor/rabbitmq/observe"
)

// fakeRabbitMQ has what a test says.
type fakeRabbitMQ struct {
	status  rabbitmq.Status
	allowed []string
	err     error
}

func (f *fakeRabbitMQ) Status() rabbitmq.Status      { return f.status }
func (f *fakeRabbitMQ) Pause(context.Context) error  { return f.err }
func (f *fakeRabbitMQ) Resume(context.Context) error { return f.err }
func (f *fakeRabbitMQ) Allow(_ context.Context, queue string) error {
	f.allowed = append(f.allowed, queue)
	return f.err
}

var _ RabbitMQ = (*rabbitmq.Primary)(nil)

func TestRabbitMQPage(t *testing.T) {
	p50, p99 := 3.0, 12.0
	f := &fakeRabbitMQ{status: rabbitmq.Status{Address: "amqp://u@h/shop", VHost: "shop", Members: []string{"one", "two"}, Redis: "down", Observer: "two",
		Reasons: []string{"Redis has not answered"}, Queues: []rabbitmq.Queue{
			{Queue: "retry", Type: "quorum", Mode: "keep", State: "keeping", Keeper: "one", Here: true, Held: 1234, Expired: 7, P50: &p50, P99: &p99},
			{Queue: "far", Type: "quorum", Mode: "keep", State: "observing", Keeper: "two"},
			{Queue: "told", Type: "quorum", Mode: "retry", State: "keeping", Keeper: "two", Reported: true, Held: 4321, Expired: 98765},
			{Queue: "harmed<b>", Type: "quorum", Mode: "keep", State: "let_go", Reason: "it came again", NeedsOperator: true},
			{Queue: "limited", Mode: "keep", State: "refused", Reason: "It has a maximal length.", Instead: "Take it off.", Code: "max_length"},
			{Queue: "uniform", Mode: "keep", State: "exact", Reason: "All have one TTL."},
			{Queue: "orders", Mode: "observe", State: "observed", Observed: &observe.State{Tapped: true, Ready: 5, Overdue: 2, Counts: observe.Counts{Missed: 9}}},
			{Queue: "hash", Mode: "observe", State: "observed", Reason: "An exchange of another type.", Observed: &observe.State{Reason: "An exchange of another type."}},
			{Queue: "elsewhere", Mode: "observe", State: "observed"},
		}}}
	s := newSite(t)
	s.with(func(o *Options) {
		o.RabbitMQ, o.Operations = f, nil
		o.Changes = changes.New(changes.Options{Incidents: s.incidents, RabbitMQ: f, Recorder: operate.NewRecorder(operate.RecorderOptions{})})
	})
	s.logIn("root")
	page := s.get("/rabbitmq").body
	for _, want := range []string{"1,234", "4,321", "98,765", "5,555", "≤ 3 / ≤ 12", "kept elsewhere", "harmed&lt;b&gt;", "Keep again", "It has a maximal length. Take it off.", "All have one TTL.",
		"each message", "by its totals", "An exchange of another type.", "another Curfew observes", "Redis has not answered", "one, two"} {
		require.Contains(t, page, want)
	}
	require.NotContains(t, page, "<b>harmed")

	form := hiddenForm(page)
	require.Equal(t, "harmed<b>", form.Get("queue"))
	s.post("/rabbitmq/allow", form)
	require.Equal(t, []string{"harmed<b>"}, f.allowed)
	f.err = rabbitmq.ErrNotLetGo
	require.Equal(t, http.StatusNotFound, s.post("/rabbitmq/allow", form).status)
	f.err = errors.New("no Redis")
	require.Equal(t, http.StatusServiceUnavailable, s.post("/rabbitmq/allow", form).status)

	s.logIn("eye")
	require.NotContains(t, s.get("/rabbitmq").body, "Keep again")
	require.Equal(t, http.StatusForbidden, s.post("/rabbitmq/allow", form).status)
	require.Len(t, f.allowed, 3)
}
