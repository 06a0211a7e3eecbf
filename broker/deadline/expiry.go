package deadline

import (
	"strconv"
	"time"
)

// Action is what became of an expired message.
type Action uint8

const (
	// Dropped: its queue has no dead-letter exchange, or a dead-letter cycle was cut.
	Dropped Action = iota
	// DeadLettered: it went to the queues that its dead-letter exchange routes it to.
	// If one of them could not take it, its own queue keeps it until all have it
	// (x-dead-letter-strategy at-least-once).
	DeadLettered
	// Parked: its dead-letter exchange is missing or routes it nowhere.
	Parked

	// Actions is the number of actions.
	Actions = int(iota)
)

// String is the action as metrics and the audit call it: "dropped", "dead_lettered",
// "parked".
func (a Action) String() string {
	return [Actions]string{"dropped", "dead_lettered", "parked"}[a]
}

// Path says how an expiry was noticed.
type Path uint8

const (
	// Lazy: a delivery or a get met the message.
	Lazy Path = iota
	// Requeued: the message came back to its queue past its deadline, or with the start of Curfew: it was held when the last run ended.
	Requeued
	// Eager: the schedule fired.
	Eager
	// Index: the monitor's own index fired in place of a schedule that was away or was
	// being rebuilt.
	Index
	// Stalled: the monitor's own index fired in place of a schedule that was up and did
	// not fire.
	Stalled
	// Manual: a user made the deadline come.
	Manual
	// Scheduled: a delayed message was due and could go nowhere. This is not an expiry.
	Scheduled

	// Paths is the number of paths.
	Paths = int(iota)
)

// String is the path as metrics, the audit and traces call it: "lazy", "requeue",
// "eager", "index" (also for Stalled), "manual", "scheduled".
func (p Path) String() string {
	return [Paths]string{"lazy", "requeue", "eager", "index", "index", "manual", "scheduled"}[p]
}

// Proposed reports whether the expiry was proposed from outside the broker: the path is
// Eager, Index or Stalled.
func (p Path) Proposed() bool { return p == Eager || p == Index || p == Stalled }

// Trace is the W3C trace context of a message: the values of its headers traceparent and
// tracestate. They are empty if it has none.
type Trace struct{ Parent, State []byte }

// HeldLong is beside a lateness where Requeued is the path.
const HeldLong = "held by a consumer"

// LateBesides says, after how many were late, how many consumers held past their deadlines; "": none.
func LateBesides(held uint64) string {
	if held == 0 {
		return ""
	}
	return ", besides " + strconv.FormatUint(held, 10) + " that consumers held"
}

// Expiry is the record of one message that expired, or of a delayed message that was due
// and could go nowhere (Scheduled).
type Expiry struct {
	Ref          Ref
	VHost, Queue string // where it expired; the queue may be gone by now
	Path         Path
	Action       Action
	// Arrived is when the message reached the place it went to: when its dead letter entered
	// its queues or, if it was dropped, when it left its own queue.
	Arrived Instant
	// ClockAhead is how far the broker's clock, on which Ref.Deadline and Arrived are, is
	// ahead of the wall clock.
	ClockAhead time.Duration
	// Intended: the message was in its queue so that it would expire, as a delay or a retry.
	// It is counted, but not as missed; it may be late like any other.
	Intended bool
	// Observed: RabbitMQ expired it by itself, in a queue that Curfew only observes.
	Observed bool

	// Reason is why a message that did not expire left its queue, as in x-death: "rejected",
	// "maxlen" or "delivery_limit". It is empty for an expiry.
	Reason string

	// The rest is empty unless a subscriber needs it (Details).

	MessageID  []byte // the property; empty: the message has none
	Trace      Trace
	Exchange   string   // the exchange that the dead letter went to
	RoutingKey []byte   // with this key
	To         []string // into these queues
}

// LateAfter is the lateness above which an expired message is late, if its lateness counts.
const LateAfter = time.Second

// Counts reports whether the lateness is Curfew's: no consumer returned the message after its deadline, no user made it expire, and no RabbitMQ did by itself.
func (e *Expiry) Counts() bool {
	return e.Path != Requeued && e.Path != Manual && e.Path != Scheduled && !e.Observed
}

// Late reports whether the message is late. Status, pages, history, alerts and metrics count these.
func (e *Expiry) Late() bool { return e.Counts() && e.Lateness() > LateAfter }

// Lateness is how long after its deadline the message reached the place it went to. It is 0
// for one that expired before its deadline because a user made the deadline come. Metrics,
// alerts, audit and traces all show this value.
func (e *Expiry) Lateness() time.Duration { return Lateness(e.Ref.Deadline, e.Arrived) }

// Lateness is how long after its deadline a message reached the place it went to; at least 0. A
// message without a deadline cannot be late.
func Lateness(deadline, arrived Instant) time.Duration {
	if deadline == 0 {
		return 0
	}
	return max(arrived.Sub(deadline), 0)
}

// Wall returns the deadline and the arrival as the wall clock would have shown them. If there
// is no deadline, it stays 0.
func (e *Expiry) Wall() (deadline, arrived Instant) {
	arrived = e.Arrived.Add(-e.ClockAhead)
	if e.Ref.Deadline == 0 {
		return 0, arrived
	}
	return e.Ref.Deadline.Add(-e.ClockAhead), arrived
}
