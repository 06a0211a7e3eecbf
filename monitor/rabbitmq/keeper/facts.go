package keeper

import (
	"fmt"
	"time"
)

// Type is the type of a queue.
type Type uint8

const (
	Classic Type = iota
	Quorum
	Stream
)

func (t Type) String() string {
	switch t {
	case Classic:
		return "classic"
	case Quorum:
		return "quorum"
	case Stream:
		return "stream"
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Family groups the versions of RabbitMQ that treat returned and unacked messages alike.
type Family uint8

const (
	V3  Family = iota // 3.x: each return counts against the delivery limit; consumer_timeout closes the channel
	V40               // 4.0 to 4.2: as 3.x, and quorum queues have a delivery limit of 20 by default
	V43               // from 4.3: basic.nack does not count; only quorum queues time out, after what the consumer asks for
)

// Overflow is what a queue with max-length or max-length-bytes does when it is full.
type Overflow uint8

const (
	Unlimited Overflow = iota // no max-length
	DropHead
	RejectPublish
)

// Presence is whether others consume, as far as is known.
type Presence uint8

const (
	Unclear Presence = iota
	Absent
	Present
)

// Facts are what has to be known of a queue before its messages are taken: its arguments and the policies on it, as
// they apply together. A wrong fact may cost messages their order, or early dead-lettering by max-length; it never
// makes one expire early.
type Facts struct {
	Type         Type
	Family       Family
	Exclusive    bool
	AutoDelete   bool
	Expires      bool // x-expires or a policy's expires
	SingleActive bool // x-single-active-consumer
	Overflow     Overflow
	DelayedRetry bool // 4.3 quorum queues: x-delayed-retry-type other than disabled
	// TTL is the queue's message-ttl; negative is none, and 0 is a TTL of 0.
	TTL time.Duration
	// DeliveryLimit is the quorum queue's; 0 is none.
	DeliveryLimit int
	// ConsumerTimeout is the node's, or the queue's where it has one; 0 is unknown, for which 30 min are assumed.
	ConsumerTimeout time.Duration
	// Others is whether RabbitMQ lists consumers whose tags are not the keeper's (OwnTag). The list may be seconds old.
	Others Presence
	// Unknown names what could not be read, such as "policies"; the queue is refused while it is not empty, unless
	// Options.AllowUnknown.
	Unknown string
}

// refusal says why the messages of such a queue must not be held, and what to do instead. It is "" if they may be.
func (f Facts) refusal() string {
	switch {
	case f.Type == Stream:
		return "a stream: its messages expire by segment, not one by one"
	case f.Exclusive:
		return "exclusive: only the connection that declared it may consume"
	case f.AutoDelete:
		return "auto-delete: the queue would be deleted when its messages are given back"
	case f.Expires:
		return "x-expires: holding messages would keep the unused queue alive"
	case f.SingleActive:
		return "single active consumer: the keeper would be the active one, and the applications would get nothing"
	case f.Overflow == DropHead:
		return "max-length with drop-head: held messages do not count, and what is over the limit would be dead-lettered when they are given back"
	case f.Overflow == RejectPublish:
		return "max-length with reject-publish: held messages do not count, so the limit would not hold"
	case f.DelayedRetry:
		return "delayed retry: what is given back would be delayed by the queue"
	}
	return ""
}

// returnsCount says that a basic.nack counts against the delivery limit.
func (f Facts) returnsCount() bool { return f.Type == Quorum && f.Family != V43 }

// takes is how many returns a message may have behind it when it is taken: a quarter of the limit. -1 is any number.
func (f Facts) takes() int {
	if f.Type != Quorum || f.DeliveryLimit <= 0 {
		return -1
	}
	return f.DeliveryLimit / 4
}

// probeShare is the step between probes of messages of unknown age, as a share of their TTL: at least what is asked for,
// and where each return counts so large that a quarter of the delivery limit suffices for it alone (spends). 0: no probes.
func (f Facts) probeShare(asked float64) float64 {
	most := f.takes()
	switch {
	case most < 0 || !f.returnsCount():
		return asked
	case most < 3:
		return 0
	}
	return max(asked, 1/float64(most))
}

// spends reports that a message that has been returned so often is not to be probed again: one return is left for a takeover.
func (f Facts) spends(returns int) bool {
	most := f.takes()
	return most >= 0 && f.returnsCount() && returns+2 > most
}

// strands says that the queue keeps what a cancelled consumer holds when the node of its connection goes down, until the node is up again
// and the queue has another leader after that.
func (f Facts) strands() bool { return f.Type == Quorum && f.Family != V43 }

// needsCredit says that a consumer cannot ask for no credit when it is put back under its tag, but for one message at the least.
func (f Facts) needsCredit() bool { return f.Type == Quorum && f.Family == V40 }

const assumedConsumerTimeout = 30 * time.Minute

// holdLimit is how long a message may be held before it is given back and taken again; 0 is forever.
func (f Facts) holdLimit() time.Duration {
	if f.Family == V43 {
		return 0 // classic queues have no timeout, and for quorum queues the consumer asks for a long one
	}
	if f.ConsumerTimeout <= 0 {
		return assumedConsumerTimeout / 2
	}
	return f.ConsumerTimeout / 2
}
