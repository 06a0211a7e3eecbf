package deadline

import (
	"slices"
	"strings"
)

// Purpose is what a queue is for. It decides whether an expiry there is a loss. The zero value is none, and counts as Work.
type Purpose uint8

// The purposes: those first whose messages matter more.
const (
	// Work is to be consumed; an expiry is a loss.
	Work Purpose = iota + 1
	// Retry holds messages for a time, then gives them to a queue that is consumed: an expiry is the flow.
	Retry
	// DeadLetters keeps what has died elsewhere.
	DeadLetters
	// Reply is of one client, for the answers to its requests.
	Reply
	// Telemetry has readings of which the newest count: an expiry is meant.
	Telemetry
)

// Purposes are the names, as the argument x-curfew-purpose and the policy key curfew-purpose have them, in order.
var Purposes = []string{"work", "retry", "dead-letters", "reply", "telemetry"}

// ParsePurpose returns the purpose of a name; ok is false for another text.
func ParsePurpose(name string) (p Purpose, ok bool) {
	p = Purpose(slices.Index(Purposes, name) + 1)
	return p, p != 0
}

// String is the name; "" for none.
func (p Purpose) String() string {
	if p == 0 || int(p) > len(Purposes) {
		return ""
	}
	return Purposes[p-1]
}

// MarshalText implements encoding.TextMarshaler.
func (p Purpose) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Loses reports whether an expiry in a queue of that purpose is a loss.
func (p Purpose) Loses() bool { return p <= Work }

// QueueFacts are what a purpose is inferred from.
type QueueFacts struct {
	Name       string
	Exclusive  bool
	AutoDelete bool
	TTL        bool // a time to live of its own: messages are meant to stay for so long
	Bounded    bool // it drops its oldest messages when it is full
	// Consumed says that a client has ever consumed it, TargetConsumed that one has consumed another queue to which its dead-letter exchange leads.
	// Onward says that the other queue has a dead-letter exchange itself, so that it is for work, and not the last stop. Shared says that queues
	// that have been consumed give their dead letters there, too.
	Consumed, TargetConsumed, Onward, Shared bool
	DeadLetters                              bool // it has a dead-letter exchange
	Collects                                 bool // a dead-letter exchange leads here
}

// PurposeOf infers what a queue is for, if nobody has said it.
//
// Retry: messages go in with a time to live, of the queue or, where they go back to work, of their own, and leave only by it, into a queue that
// has been consumed, and not only for the dead letters of others. Telemetry: nothing is kept of what expires or does not fit. Whoever has ever
// consumed a queue works on it, unless its messages have died before: that nobody does so now, or since a restart, is no sign of another purpose.
func PurposeOf(q QueueFacts) Purpose {
	switch {
	case q.Exclusive || q.AutoDelete && strings.HasPrefix(q.Name, "amq.gen-"):
		return Reply
	case !q.Consumed && q.TargetConsumed && (q.Onward || q.TTL && !q.Shared):
		return Retry
	case q.Collects && !q.DeadLetters:
		return DeadLetters
	case q.TTL && q.Bounded && !q.DeadLetters:
		return Telemetry
	}
	return Work
}
