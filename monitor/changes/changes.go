package changes

import (
	"cmp"
	"context"
	"errors"

	"go.uber.org/zap"

	"curfew/broker/operate"
	"curfew/monitor/incident"
	"curfew/monitor/rabbitmq"
)

// Options of Changes. Incidents and Recorder are required.
type Options struct {
	Incidents *incident.Incidents // required
	RabbitMQ  RabbitMQ            // nil: none
	Recorder  *operate.Recorder
}

// RabbitMQ is the one whose deadlines are kept. *rabbitmq.Primary is one.
type RabbitMQ interface {
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Changes are what users may change of a node. Safe for concurrent use.
type Changes struct {
	Operations *operate.Operations // that do the operations of this package
	o          Options
}

// New makes the changes that a node offers.
func New(o Options) *Changes {
	c := &Changes{o: o}
	c.Operations = operate.New(operate.Options{Recorder: o.Recorder, Node: c})
	return c
}

// Do does an operation of this package as the actor.
func Do[Q, R any](ctx context.Context, c *Changes, by operate.Actor, op operate.Typed[Q, R], request Q) (R, error) {
	return op.Do(ctx, c.Operations, by, request)
}

// define defines an operation on a node, for administrators. Errors of the incidents become those of operations; incident.ErrNotSaved stays.
func define[Q, R any](op operate.Op, do func(context.Context, *Options, *operate.Call, Q) (R, error)) operate.Typed[Q, R] {
	op.Rule, op.OfNode = operate.Rule{Role: operate.Rules[operate.ChangeAlerts].Role}, true
	return operate.Define(op, func(ctx context.Context, c *operate.Call, q Q) (r R, err error) {
		changes, is := c.Node.(*Changes)
		if !is {
			return r, operate.ErrNotFound
		}
		r, err = do(ctx, &changes.o, c, q)
		_, known := errors.AsType[*operate.Unavailable](err)
		switch {
		case err == nil || known || errors.Is(err, incident.ErrNotSaved) || errors.Is(err, operate.ErrNotFound):
			return r, err
		case errors.Is(err, incident.ErrNotFound):
			return r, &operate.Missing{Reason: err.Error()}
		}
		return r, &operate.Invalid{Reason: err.Error()}
	})
}

var _ = operate.Group("incident", "List what is wrong, acknowledge it, plan maintenance, check rules, test sinks")

// Ack is an acknowledgement of an incident.
type Ack struct {
	ID string `json:"incident" form:"id" log:"acknowledged"`
	incident.AckRequest
}

// IncidentID names an incident.
type IncidentID struct {
	ID string `json:"incident" form:"id" log:"unacknowledged" eg:"3f9a01c2b47d"`
}

// WindowID names a maintenance window.
type WindowID struct {
	ID string `json:"id" log:"maintenance_ended" eg:"Q7YBJ4ZK2MNO5P3R"`
}

// Acknowledge takes an incident over, in the actor's name, and Unacknowledge ends that. AddWindow adds a maintenance window, whose author is the actor if
// none is given, and EndWindow ends one. TestSinks sends a test to one sink, or with an empty name to each but the log; that a sink did not take it
// is in the result. Errors: *operate.MissingRole, *operate.Invalid, *operate.Missing, incident.ErrNotSaved.
var (
	Acknowledge = define(operate.Op{
		Name: "acknowledge_incident", Noun: "incident", Title: "Acknowledge incidents: nobody is notified of them until they are over, or for a time",
		Text: "Without a body, or without `duration`, until the incident is over.", Routes: []string{"POST /api/curfew/incidents/{incident}/ack"}, Command: "incident ack <incident>...",
	}, func(_ context.Context, o *Options, c *operate.Call, q Ack) (none operate.None, err error) {
		ack, err := q.AckOf(c.Actor.Name)
		if err == nil {
			err = o.Incidents.Acknowledge(q.ID, ack)
		}
		return none, err
	})
	Unacknowledge = define(operate.Op{
		Name: "unacknowledge_incident", Noun: "incident", Title: "End acknowledgements", Routes: []string{"DELETE /api/curfew/incidents/{incident}/ack"}, Command: "incident unack <incident>...",
	}, func(_ context.Context, o *Options, c *operate.Call, q IncidentID) (none operate.None, err error) {
		return none, o.Incidents.Unacknowledge(q.ID, c.Actor.Name)
	})
	AddWindow = define(operate.Op{
		Name: "add_maintenance", Title: "Notify nobody for a time of incidents of some queues", Text: "It needs `duration` or `until`; `id` is ignored.",
		Routes: []string{"POST /api/curfew/maintenance"}, Makes: true,
	}, func(_ context.Context, o *Options, c *operate.Call, q incident.WindowRequest) (made incident.Window, err error) {
		w, err := q.WindowOf()
		if err == nil {
			w.Author = cmp.Or(w.Author, c.Actor.Name)
			made, err = o.Incidents.AddWindow(w)
		}
		if err == nil {
			c.Log(zap.String("maintenance", made.ID))
			c.Log(zap.Time("until", made.Until))
		}
		return made, err
	})
	EndWindow = define(operate.Op{
		Name: "end_maintenance", Noun: "maintenance window", Title: "End maintenance windows", Routes: []string{"DELETE /api/curfew/maintenance/{id}"},
		Command: "incident end-maintenance <id>...", Alias: "unsilence",
	}, func(_ context.Context, o *Options, _ *operate.Call, q WindowID) (none operate.None, err error) {
		return none, o.Incidents.EndWindow(q.ID)
	})
	TestSinks = define(operate.Op{
		Name: "test_sinks", Title: "Send a test to one sink or to all", Routes: []string{"POST /api/curfew/incidents/test"}, Slow: true,
	}, func(ctx context.Context, o *Options, c *operate.Call, q incident.TestRequest) (incident.TestResults, error) {
		c.Log(zap.String("tested_sink", cmp.Or(q.Sink, "all")))
		return o.Incidents.SendTest(ctx, q.Sink)
	})
)

// PauseRabbitMQ has all queues of the RabbitMQ given back until ResumeRabbitMQ. Errors:
// *operate.MissingRole, *operate.Missing, *operate.Unavailable.
var (
	PauseRabbitMQ = define(operate.Op{
		Name: "pause_rabbitmq", Title: "Give back all that is held, and keep no queue until that is resumed", Text: onlyRabbitMQ, Routes: []string{"POST /api/curfew/rabbitmq/pause"},
	}, func(ctx context.Context, o *Options, _ *operate.Call, _ operate.None) (none operate.None, err error) {
		return none, o.change(func(r RabbitMQ) error { return r.Pause(ctx) })
	})
	ResumeRabbitMQ = define(operate.Op{
		Name: "resume_rabbitmq", Title: "Keep queues again after a pause", Text: "404: nothing is paused. " + onlyRabbitMQ, Routes: []string{"POST /api/curfew/rabbitmq/resume"},
	}, func(ctx context.Context, o *Options, _ *operate.Call, _ operate.None) (none operate.None, err error) {
		return none, o.change(func(r RabbitMQ) error { return r.Resume(ctx) })
	})
)

const onlyRabbitMQ = "Only beside RabbitMQ (`CURFEW_PRIMARY_URL`)."

// change changes what is done beside the RabbitMQ.
func (o *Options) change(change func(RabbitMQ) error) error {
	if o.RabbitMQ == nil {
		return &operate.Missing{Reason: "this Curfew does not run beside RabbitMQ"}
	}
	switch err := change(o.RabbitMQ); {
	case errors.Is(err, rabbitmq.ErrNotPaused):
		return &operate.Missing{Reason: err.Error()}
	case err != nil:
		return &operate.Unavailable{Err: err}
	}
	return nil
}
