package monitor

import (
	"context"
	"time"

	"curfew/broker/deadline"
)

// Primary is where the messages are, such as broker.Deadlines. It alone decides: it expires
// a message at most once, so every request may be repeated. All methods are safe for
// concurrent use, except that Events has one caller.
type Primary interface {
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
	// each to out, in order. It waits neither for dead letters to arrive nor for a network: a
	// primary whose messages are elsewhere answers Asked. Then Left follows in the feed and
	// the record on the stream; if neither comes within half a minute, it is asked again.
	// path is Eager, Index or Stalled, and is part of the record. Without wait it does not wait
	// for a queue that somebody else is using either, and answers Busy.
	Expire(shadows []deadline.Ref, path deadline.Path, wait bool, out []deadline.Answer) []deadline.Answer
	// Expiries is the stream with one record of each message that expires, whatever its
	// path: of a dead letter, when it has arrived.
	Expiries() *deadline.Stream
	// Snapshot calls fn with every queued message that has a deadline, in pages that fn may
	// change but not keep, and tracks these messages from then on. Events are recorded from
	// its start at the latest. It may take long.
	Snapshot(ctx context.Context, fn func(page []deadline.Ref) error) error
	// QueueName returns the name of the queue with a number; false when it is gone.
	QueueName(queue uint64) (vhost, name string, ok bool)
	// Now is the present instant, rounded down, by the clock that deadlines are stamped and
	// judged with.
	Now() deadline.Instant
	// ClockOffset is how far that clock is ahead of the wall clock, which is the one that
	// people see.
	ClockOffset() time.Duration
}

// SelfScheduled is a Primary that keeps the deadlines of its messages in a schedule of its own and fires them itself: its
// feed has no events. The monitor counts and reports what expires, and asks the primary which deadlines are pending.
type SelfScheduled interface {
	// Waiting returns how many deadlines are known to be pending, and the next of them; 0: none.
	Waiting() (pending int64, nextAt deadline.Instant)
	// PendingBefore appends, for each of the instants in order, how many deadlines are at or before it.
	PendingBefore(until []deadline.Instant, out []int64) []int64
}
