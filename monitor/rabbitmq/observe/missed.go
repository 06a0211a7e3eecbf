package observe

import "curfew/broker/deadline"

// Missed is one message that missed its deadline. It is reported when that is seen, and again
// when the message has left its queue (Miss.Left).
type Missed struct {
	VHost, Queue string
	// Line is the number of the queue's line. No two lines of an Observer share one, so Line
	// and Number together identify the message.
	Line uint64
	// DeadLettered: its queue has a dead-letter exchange.
	DeadLettered bool
	Miss
}

// Expiry returns the record of a message that has left, for alerts and the audit; false if it
// still waits. Its instants are those of this machine's clock.
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
