package deadline

import "cmp"

// Ref names one message in one queue. A queue's number is never used again, nor is a
// message's number within one queue while the process lives. After a restart the
// deadline tells an old reference from a new message. The zero value names no message.
type Ref struct {
	Deadline Instant // 0: the message has none
	Queue    uint64  // the queue's number, which no other queue ever has
	Seq      uint64  // the message's number in the queue
}

// Compare orders by deadline, then queue, then Seq.
func (r Ref) Compare(o Ref) int {
	if c := cmp.Compare(r.Deadline, o.Deadline); c != 0 {
		return c
	}
	if c := cmp.Compare(r.Queue, o.Queue); c != 0 {
		return c
	}
	return cmp.Compare(r.Seq, o.Seq)
}

// EventKind says what happened to a message with a deadline.
type EventKind uint8

const (
	// Enqueued: the message has entered a queue with this deadline.
	Enqueued EventKind = iota
	// Left: the message has left its queue, or no longer has this deadline. In the second
	// case a Changed event follows, unless it has no deadline at all now. Only messages that
	// are tracked have this event.
	Left
	// Changed: the message has this deadline now. It may be one that it had before.
	Changed
)

// Event is one entry of the feed that keeps an index of deadlines in step with the
// queues.
type Event struct {
	Ref  Ref
	Kind EventKind
}

// Outcome is the answer to a request about the deadline of one message.
type Outcome uint8

const (
	// Expired: the message has left its queue because of this request.
	Expired Outcome = iota
	// Gone: the message left before, or its queue is gone, or the message has another
	// deadline than the request names.
	Gone
	// Held: a consumer holds the message unacknowledged. It expires by itself if it comes
	// back to its queue.
	Held
	// NotDue: the deadline is still ahead by the broker's clock.
	NotDue
	// Rescheduled: the message has another deadline now, which a Changed event reports.
	Rescheduled
	// Busy: somebody else is working on the queue, and the caller did not want to wait. Nothing has
	// happened, and the request must be repeated.
	Busy

	// Outcomes is the number of outcomes.
	Outcomes = int(iota)
)

// String is the outcome as metrics label it: "expired", "gone", "held", "not_due",
// "rescheduled", "busy".
func (o Outcome) String() string {
	return [Outcomes]string{"expired", "gone", "held", "not_due", "rescheduled", "busy"}[o]
}

// Answer is the outcome for one message.
type Answer struct {
	Outcome Outcome
	At      Instant // Expired: when it left its queue; NotDue: its deadline; otherwise 0
}
