package queue

import (
	"fmt"

	"curfew/broker/deadline"
)

// Seq is the identity of a message in its queue: its priority in the top eight
// bits, its number within that priority below. Numbers start at 1, ascend in
// the order of publishing and are never given twice. Zero names no message.
type Seq uint64

const (
	numberBits = 56
	numberMask = 1<<numberBits - 1
)

func makeSeq(priority uint8, number uint64) Seq {
	return Seq(priority)<<numberBits | Seq(number)
}

// Priority is the priority of the message.
func (s Seq) Priority() uint8 { return uint8(s >> numberBits) }

func (s Seq) number() uint64 { return uint64(s) & numberMask }

// String prints the number, with the priority before it unless that is zero.
func (s Seq) String() string {
	if s.Priority() == 0 {
		return fmt.Sprint(s.number())
	}
	return fmt.Sprintf("p%d/%d", s.Priority(), s.number())
}

// Flags are what a queue remembers about a message besides its numbers.
type Flags uint8

const (
	// Immediate marks a time to live of zero: ExpiresAt is the instant of publishing, and at
	// that instant the message may still be taken (RabbitMQ: Time-To-Live).
	Immediate Flags = 1 << iota
	// Durable is kept for the caller; the queue does not act on it.
	Durable
	// Redelivered: it was delivered before and came back.
	Redelivered
	// Died: it is a dead letter, and the death headers in its bytes are the
	// broker's own. Kept for the caller.
	Died
	// Hidden: its bytes hold a header that no consumer may see. Kept for the caller.
	Hidden
	// Receipt: its publisher may want a receipt if it expires. Kept for the caller.
	Receipt

	tracked // its Settled will say so

	// OneKey: it was routed by its routing key alone, whatever further keys a header names.
	// Kept for the caller.
	OneKey

	publicFlags = Immediate | Durable | Redelivered | Died | Hidden | Receipt | OneKey
)

// Message is what a queue knows about a message. The zero ExpiresAt means never.
type Message struct {
	Pos       uint64           // where the store keeps it; opaque here
	ExpiresAt deadline.Instant // 0: never
	Bytes     uint32           // of the body
	Flags     Flags
}

// Delivery is a message that Take handed out. It is unacked until Settle,
// Requeue or Return.
type Delivery struct {
	Seq Seq
	Message
	Redelivered bool
	Deliveries  uint16 // earlier deliveries that failed, see Queue.Requeue
}

// State is whether a queued message can be taken, has been handed out or waits for another try.
type State uint8

const (
	gone State = iota // the zero entry: no message has this number
	// Ready messages wait to be taken.
	Ready
	// Unacked messages were taken and not yet settled or requeued.
	Unacked
	// Waiting messages came back, and are ready again later (Options.Retry).
	Waiting
)

func (s State) String() string {
	return [...]string{"gone", "ready", "unacked", "waiting"}[s]
}
