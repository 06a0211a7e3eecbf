package monitor

import (
	"context"
	"time"

	"curfew/scheduler"
)

// EventKind says what happened to a message with a finite deadline.
type EventKind uint8

const (
	// Enqueued: it stands in a queue.
	Enqueued EventKind = iota
	// Settled: it left its queue, or has another deadline, of which Rescheduled tells
	// next. Told only of messages that Track or Snapshot named before, and not of what
	// Expire removed.
	Settled
	// Rescheduled: it has this deadline now, maybe one it had before.
	Rescheduled
)

// Action is what became of an expired message.
type Action uint8

const (
	// Dropped: no dead-letter exchange is configured, or a cycle was cut.
	Dropped Action = iota
	// DeadLettered: it went where its dead-letter exchange routes it.
	DeadLettered
	// Parked: its dead-letter exchange is missing or routes it nowhere.
	Parked

	actions = int(iota)
)

// String is the label value: "dropped", "dead_lettered", "parked".
func (a Action) String() string {
	return [actions]string{"dropped", "dead_lettered", "parked"}[a]
}

// Path says who noticed an expiry.
type Path uint8

const (
	// Lazy: a delivery or a get met the message.
	Lazy Path = iota
	// Requeue: it came back to its queue past its deadline.
	Requeue
	// Eager: its schedule fired.
	Eager
	// Index: the in-process index fired in place of a Redis schedule that was away, or
	// did not fire at once.
	Index
	// Stalled: the index fired in place of a Redis schedule that was up, and stuck.
	Stalled
	// Manual: somebody made its deadline come.
	Manual
	// Scheduled: a message that was to be enqueued at that time could go nowhere. That is
	// no expiry.
	Scheduled

	paths = int(iota)
)

// String is the label value: "lazy", "requeue", "eager", "index" (Stalled too), "manual",
// "scheduled".
func (p Path) String() string {
	return [paths]string{"lazy", "requeue", "eager", "index", "index", "manual", "scheduled"}[p]
}

// Event is one entry of a primary's feed.
type Event struct {
	Shadow scheduler.Shadow
	Kind   EventKind
}

// Expiry says what became of one message that expired.
type Expiry struct {
	Shadow scheduler.Shadow
	// VHost and Queue are where it expired; the queue may be gone.
	VHost, Queue string
	At           int64 // Unix µs; when its dead letter arrived; without one, when it left its queue
	Action       Action
	Path         Path
}

// Outcome is a primary's answer to a request to expire one message.
type Outcome uint8

const (
	// Expired: it left its queue, by this request.
	Expired Outcome = iota
	// Gone: it left before, whatever the reason, or its queue is gone.
	Gone
	// Held: it is unacknowledged. The primary expires it by itself should it be
	// requeued.
	Held
	// NotDue: its deadline has not come by the primary's clock.
	NotDue
	// Failed: the primary cannot tell or act at present.
	Failed

	outcomes = int(iota)
)

// String is the label value: "expired", "gone", "held", "not_due", "failed".
func (o Outcome) String() string {
	return [outcomes]string{"expired", "gone", "held", "not_due", "failed"}[o]
}

// Result answers for one message.
type Result struct {
	At      int64 // Unix µs; Expired: when it left; NotDue: its deadline
	Outcome Outcome
}

// Primary is where the messages are. It alone decides: it settles a message at
// most once, so every request may be repeated. All methods are safe for
// concurrent use, but Events has one caller.
type Primary interface {
	// Events waits for events and moves them into buf, those of one message in
	// order. lagged says that events were lost since the last call: Snapshot then
	// gives the present state. n may be 0 when lagged. The error is that of ctx or
	// says that the feed broke, which counts as lagged.
	Events(ctx context.Context, buf []Event) (n int, lagged bool, err error)
	// Track keeps, in place, the shadows of messages still queued and asks to be
	// told (Settled) when they leave. A message never tracked settles silently.
	Track(shadows []scheduler.Shadow) []scheduler.Shadow
	// Expire removes or dead-letters those that are due and ready, and appends one
	// Result per shadow to out. It does not wait for dead letters to arrive. path is Eager,
	// Index or Stalled, for Expiries to tell.
	Expire(shadows []scheduler.Shadow, path Path, out []Result) []Result
	// Expiries has fn told of each message that expires from then on, once, whoever noticed:
	// a dead letter when it has arrived. fn is called from any goroutine, with batches that
	// are valid during the call, and must neither block nor call the primary's Expire. To be
	// called once.
	Expiries(fn func([]Expiry))
	// Snapshot names every queued message with a finite deadline, tracked from
	// then on, in pages that fn may change but not keep. Events are recorded from
	// its start at the latest.
	Snapshot(ctx context.Context, fn func(page []scheduler.Shadow) error) error
	// QueueName names a queue by its incarnation; false when it is gone.
	QueueName(queue uint64) (vhost, name string, ok bool)
	// Now is the present instant in Unix µs, by the clock deadlines are stamped
	// and judged with, rounded down.
	Now() int64
	// ClockOffset is how far that clock is ahead of the wall clock, by which people are
	// told instants.
	ClockOffset() time.Duration
}
