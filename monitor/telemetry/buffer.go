package telemetry

import "time"

// Expiry is a message that expired.
type Expiry struct {
	Deadline, Left time.Time
	VHost, Queue   string
	MessageID      []byte   // the property; may be empty
	Path           string   // who noticed: lazy, requeue, eager, manual
	Outcome        string   // what became of it: dropped, dead_lettered, parked
	Exchange       string   // the dead-letter exchange it went to
	RoutingKey     []byte   // with this key
	To             []string // into these queues
	// The headers of the message with these names; empty: it has none.
	TraceParent, TraceState []byte
}

const (
	dropped = "dropped" // an Outcome
	// maxWaiting spans wait while others are sent; what comes then is dropped and counted.
	maxWaiting = 2048
	// maxTargets is how many of the queues a message went to its span names.
	maxTargets = 8
)

// buffer is expiries that wait, with what they refer to. Its memory is used again.
type buffer struct {
	expiries []Expiry
	texts    []byte
	names    []string
}

// add copies e.
func (b *buffer) add(e *Expiry) {
	kept := *e
	kept.MessageID, kept.RoutingKey = b.text(e.MessageID), b.text(e.RoutingKey)
	kept.TraceParent, kept.TraceState = b.header(e.TraceParent), b.header(e.TraceState)
	from := len(b.names)
	b.names = append(b.names, e.To[:min(len(e.To), maxTargets)]...)
	kept.To = b.names[from:len(b.names):len(b.names)]
	b.expiries = append(b.expiries, kept)
}

// header copies a header that is not longer than any that is of use.
func (b *buffer) header(t []byte) []byte {
	if len(t) > maxState {
		return nil
	}
	return b.text(t)
}

func (b *buffer) text(t []byte) []byte {
	from := len(b.texts)
	b.texts = append(b.texts, t...)
	return b.texts[from:len(b.texts):len(b.texts)]
}

func (b *buffer) reset() {
	clear(b.expiries)
	clear(b.names)
	b.expiries, b.texts, b.names = b.expiries[:0], b.texts[:0], b.names[:0]
}
