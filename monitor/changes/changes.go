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

// RabbitMQ is a RabbitMQ whose deadlines are kept. *rabbitmq.Primary is one.
type RabbitMQ interface {
	Allow(ctx context.Context, queue string) error
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Changes are what users may change. Safe for concurrent use.
type Changes struct{ o Options }

// New makes the changes that a node offers.
func New(o Options) *Changes { return &Changes{o} }

// NotFound says that what was to be changed does not exist. It is an operate.ErrNotFound.
type NotFound struct{ Reason string }

// Error implements error.
func (e *NotFound) Error() string { return e.Reason }

// Is implements errors.Is.
func (e *NotFound) Is(err error) bool { return err == operate.ErrNotFound }

// Unavailable says that another server, which the change needs, did not answer.
type Unavailable struct{ err error }

// Error implements error.
func (e *Unavailable) Error() string {
	return "the other Curfews could not be reached: " + e.err.Error()
}

// Unwrap returns the cause.
func (e *Unavailable) Unwrap() error { return e.err }

var (
	errNoIncident = &NotFound{incident.ErrNotFound.Error()}
	errNoRabbitMQ = &NotFound{"this Curfew does not run beside a RabbitMQ"}
)

// Acknowledge takes an incident over, in the actor's name. Errors: *operate.MissingRole, *operate.Invalid, *NotFound, incident.ErrNotSaved.
func (c *Changes) Acknowledge(by operate.Actor, id string, ask incident.AckRequest) error {
	return c.changeAlerts(by, func() ([]zap.Field, error) {
		ack, err := ask.AckOf(by.Name)
		if err == nil {
			err = c.o.Incidents.Acknowledge(id, ack)
		}
		return []zap.Field{zap.String("acknowledged", id)}, failure(err)
	})
}

// Unacknowledge ends that. Errors: *operate.MissingRole, *NotFound, incident.ErrNotSaved.
func (c *Changes) Unacknowledge(by operate.Actor, id string) error {
	return c.changeAlerts(by, func() ([]zap.Field, error) {
		return []zap.Field{zap.String("unacknowledged", id)}, failure(c.o.Incidents.Unacknowledge(id, by.Name))
	})
}

// failure is an error of the incidents as one of a change.
func failure(err error) error {
	switch {
	case err == nil || errors.Is(err, incident.ErrNotSaved):
		return err
	case errors.Is(err, incident.ErrNotFound):
		return errNoIncident
	}
	return &operate.Invalid{Reason: err.Error()}
}

// AddWindow adds a maintenance window; the author is the actor if none is given. Errors: *operate.MissingRole, *operate.Invalid,
// incident.ErrNotSaved.
func (c *Changes) AddWindow(by operate.Actor, w incident.Window) (made incident.Window, err error) {
	err = c.changeAlerts(by, func() (more []zap.Field, err error) {
		w.Author = cmp.Or(w.Author, by.Name)
		if made, err = c.o.Incidents.AddWindow(w); err != nil {
			return nil, failure(err)
		}
		return []zap.Field{zap.String("maintenance", made.ID), zap.Time("until", made.Until)}, nil
	})
	return made, err
}

// EndWindow ends a maintenance window. Errors: *operate.MissingRole, *NotFound, incident.ErrNotSaved.
func (c *Changes) EndWindow(by operate.Actor, id string) error {
	return c.changeAlerts(by, func() ([]zap.Field, error) {
		return []zap.Field{zap.String("maintenance_ended", id)}, failure(c.o.Incidents.EndWindow(id))
	})
}

// TestSinks sends a test to one sink, or with an empty name to each but the log. Errors: *operate.MissingRole, *operate.Invalid for a sink that
// does not exist. That a sink did not take the test is in the results.
func (c *Changes) TestSinks(ctx context.Context, by operate.Actor, sink string) (tested []incident.Tested, err error) {
	err = c.changeAlerts(by, func() (more []zap.Field, err error) {
		if tested, err = c.o.Incidents.SendTest(ctx, sink); err != nil {
			err = &operate.Invalid{Reason: err.Error()}
		}
		return []zap.Field{zap.String("tested_sink", cmp.Or(sink, "all"))}, err
	})
	return tested, err
}

// changeAlerts makes and records one change of incidents.
func (c *Changes) changeAlerts(by operate.Actor, change func() ([]zap.Field, error)) (err error) {
	var more []zap.Field
	defer func() { c.o.Recorder.Record(by, operate.ChangeAlerts, operate.QueueName{}, err, more...) }()
	if err := by.Require(operate.RoleOf(operate.ChangeAlerts)); err != nil {
		return err
	}
	more, err = change()
	return err
}

// AllowQueue lets a queue be kept again that Curfew let go. Errors: *operate.MissingRole, *NotFound, *Unavailable.
func (c *Changes) AllowQueue(ctx context.Context, by operate.Actor, queue string) error {
	return c.rabbitmq(by, operate.AllowQueue, queue, func(r RabbitMQ) error { return r.Allow(ctx, queue) })
}

// PauseRabbitMQ has all queues of the RabbitMQ given back until ResumeRabbitMQ. Errors: *operate.MissingRole, *NotFound, *Unavailable.
func (c *Changes) PauseRabbitMQ(ctx context.Context, by operate.Actor) error {
	return c.rabbitmq(by, operate.PauseRabbitMQ, "", func(r RabbitMQ) error { return r.Pause(ctx) })
}

// ResumeRabbitMQ ends that. Errors: *operate.MissingRole, *NotFound, *Unavailable.
func (c *Changes) ResumeRabbitMQ(ctx context.Context, by operate.Actor) error {
	return c.rabbitmq(by, operate.ResumeRabbitMQ, "", func(r RabbitMQ) error { return r.Resume(ctx) })
}

// rabbitmq makes and records a change to what is done beside the RabbitMQ.
func (c *Changes) rabbitmq(by operate.Actor, op operate.Operation, queue string, change func(RabbitMQ) error) (err error) {
	defer func() { c.o.Recorder.Record(by, op, operate.QueueName{Name: queue}, err) }()
	if err := by.Require(operate.RoleOf(op)); err != nil {
		return err
	}
	if c.o.RabbitMQ == nil {
		return errNoRabbitMQ
	}
	switch err := change(c.o.RabbitMQ); {
	case errors.Is(err, rabbitmq.ErrNotLetGo), errors.Is(err, rabbitmq.ErrNotPaused):
		return &NotFound{err.Error()}
	case err != nil:
		return &Unavailable{err}
	}
	return nil
}
