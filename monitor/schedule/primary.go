package schedule

import (
	"context"

	"curfew/broker/deadline"
	"curfew/monitor"
)

// Primary is where the messages are, such as broker.Deadlines. It alone decides: it expires
// a message at most once, so every request may be repeated. All methods are safe for
// concurrent use, except that Events has one caller.
type Primary interface {
	monitor.Source
	// Events waits for events and moves them into buf, those of one message in
	// order. lagged says that events were lost since the last call: Snapshot then
	// gives the present state. n may be 0 when lagged. The error is that of ctx or
	// says that the feed broke, which counts as lagged.
	Events(ctx context.Context, buf []deadline.Event) (n int, lagged bool, err error)
	// Track keeps, in place, the refs of messages still queued. The feed then has an event
	// when they leave (deadline.Left); there is none for a message that was never tracked.
	// It answers from memory, as QueueName and Now do.
	Track(shadows []deadline.Ref) []deadline.Ref
	// Expire removes or dead-letters those that are due and ready, and appends one answer for
	// each to out, in order. It waits neither for dead letters to arrive nor for a network.
	// path is Eager, Index or Stalled, and is part of the record. Without wait it does not wait
	// for a queue that somebody else is using either, and answers Busy.
	Expire(shadows []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer
	// Snapshot calls fn with every queued message that has a deadline, in pages that fn may
	// change but not keep, and tracks these messages from then on. Events are recorded from
	// its start at the latest. It may take long.
	Snapshot(ctx context.Context, fn func(page []deadline.Ref) error) error
	// QueueName returns the name of the queue with a number; false when it is gone.
	QueueName(queue uint64) (vhost, name string, ok bool)
}
