package observe

import (
	"time"

	"curfew/broker/deadline"
)

// Missed is one message that missed its deadline, told when that is seen, and again when
// the message has left its queue (Miss.Left).
type Missed struct {
	VHost, Queue string
	// Line is a number of the queue's line: no two lines of an Observer share one, so that
	// Line and Number name the message.
	Line uint64
	// DeadLettered says that its queue has a dead-letter exchange.
	DeadLettered bool
	Miss
}

// Expiry is the record of a message that has left, as alerts and the audit take it; false
// for one that is still there. Its instants are of this machine's clock.
func (m *Missed) Expiry() (e deadline.Expiry, ok bool) {
	e = deadline.Expiry{
		Ref:   deadline.Ref{Deadline: m.Deadline, Queue: m.Line, Seq: m.Number},
		VHost: m.VHost, Queue: m.Queue, Path: deadline.Lazy, Arrived: m.Left, MessageID: []byte(m.MessageID),
	}
	if m.DeadLettered {
		e.Action = deadline.DeadLettered
	}
	return e, m.Left != 0
}

// Lateness is how long after its deadline the message was seen to have left, at most; for
// one that is still there, how long it has been late so far.
func (m *Missed) Lateness() time.Duration {
	return deadline.Lateness(m.Deadline, max(m.Left, m.Seen))
}
