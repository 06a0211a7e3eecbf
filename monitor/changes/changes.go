package changes

import (
	"cmp"
	"context"
	"errors"

	"go.uber.org/zap"

	"curfew/broker/operate"
	"curfew/monitor/alert"
	"curfew/monitor/rabbitmq"
)

// Options of Changes. Recorder is required.
type Options struct {
	Alerts   *alert.Alerts // nil: none, since the monitor is off
	RabbitMQ RabbitMQ      // nil: none
	Recorder *operate.Recorder
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
	errNoAlerts   = &NotFound{"there are no alerts: the monitor is off"}
	errNoSilence  = &NotFound{"there is no such silence"}
	errNoRabbitMQ = &NotFound{"this Curfew does not run beside a RabbitMQ"}
)

// AddSilence adds a silence; its ID and CreatedAt are set here, and the author is the actor if none is given. Errors: *operate.MissingRole,
// *operate.Invalid, *NotFound without alerts, alert.ErrNotSaved.
func (c *Changes) AddSilence(by operate.Actor, one alert.Silence) (made alert.Silence, err error) {
	err = c.changeAlerts(by, func() (more []zap.Field, err error) {
		one.Author = cmp.Or(one.Author, by.Name)
		made, err = c.o.Alerts.AddSilence(one)
		if err != nil && !errors.Is(err, alert.ErrNotSaved) {
			err = &operate.Invalid{Reason: err.Error()}
		}
		if err != nil {
			return nil, err
		}
		return []zap.Field{zap.String("silence", made.ID), zap.Time("expires_at", made.ExpiresAt)}, nil
	})
	return made, err
}

// EndSilence ends a silence. Errors: *operate.MissingRole, *NotFound, alert.ErrNotSaved.
func (c *Changes) EndSilence(by operate.Actor, id string) error {
	return c.changeAlerts(by, func() ([]zap.Field, error) {
		found, err := c.o.Alerts.EndSilence(id)
		if err == nil && !found {
			err = errNoSilence
		}
		return []zap.Field{zap.String("silence_ended", id)}, err
	})
}

// TestSinks sends a test to one sink, or with an empty name to each but the log. Errors: *operate.MissingRole, *operate.Invalid for a sink that
// does not exist, *NotFound without alerts. That a sink did not take the test is in the results.
func (c *Changes) TestSinks(ctx context.Context, by operate.Actor, sink string) (tested []alert.Tested, err error) {
	err = c.changeAlerts(by, func() (more []zap.Field, err error) {
		if tested, err = c.o.Alerts.SendTest(ctx, sink); err != nil {
			err = &operate.Invalid{Reason: err.Error()}
		}
		return []zap.Field{zap.String("tested_sink", cmp.Or(sink, "all"))}, err
	})
	return tested, err
}

// changeAlerts makes and records one change of alerts.
func (c *Changes) changeAlerts(by operate.Actor, change func() ([]zap.Field, error)) (err error) {
	var more []zap.Field
	defer func() { c.o.Recorder.Record(by, operate.ChangeAlerts, operate.QueueName{}, err, more...) }()
	if err := by.Require(operate.RoleOf(operate.ChangeAlerts)); err != nil {
		return err
	}
	if c.o.Alerts == nil {
		return errNoAlerts
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
