package keeper

import (
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// Presence is whether RabbitMQ lists consumers that are no keeper's (OfTag).
type Presence uint8

const (
	Unlisted Presence = iota // nobody may see the list
	Unclear                  // the list cannot be read at the moment
	Absent
	Present
)

// Facts are what has to be known of a queue before its messages are taken: its arguments and the policies on it, as
// they apply together. A wrong fact may cost messages their order; it never makes one expire early.
type Facts struct {
	Type   cluster.QueueType
	Family cluster.Family
	// TTL is the queue's message-ttl; negative is none, and 0 is a TTL of 0.
	TTL time.Duration
	// DeliveryLimit is the quorum queue's; 0 is none.
	DeliveryLimit int
	// ConsumerTimeout is the node's, or the queue's where it has one; 0 is unknown, for which 30 min are assumed.
	ConsumerTimeout time.Duration
	// Others is by a list that may be seconds old.
	Others Presence
}

// returnsCount reports whether a basic.nack counts against the delivery limit.
func (f Facts) returnsCount() bool {
	return f.Type == cluster.Quorum && f.Family != cluster.Family43
}

// takes is how often a message may have been returned when it is taken: a quarter of the limit. -1 is any number.
func (f Facts) takes() int {
	if f.Type != cluster.Quorum || f.DeliveryLimit <= 0 {
		return -1
	}
	return f.DeliveryLimit / 4
}

// probeShare is the step between probes of messages of unknown age, as a share of their TTL. It is probeShare;
// where each return counts, it is so large that probes alone use up at most a quarter of the delivery limit (spends).
// 0: no probes.
func (f Facts) probeShare() float64 {
	most := f.takes()
	switch {
	case most < 0 || !f.returnsCount():
		return probeShare
	case most < 3:
		return 0
	}
	return max(probeShare, 1/float64(most))
}

// spends reports whether a message that has been returned that often is not probed again: one return is left for a takeover.
func (f Facts) spends(returns int) bool {
	most := f.takes()
	return most >= 0 && f.returnsCount() && returns+2 > most
}

// putsBack reports whether a cancelled consumer is put back without credit. Before 4.3 a quorum queue keeps a cancelled consumer's messages when
// the node of its connection goes down, until the node is up again and the queue has another leader after that; and only 3.x can be asked for no
// credit.
func (f Facts) putsBack() bool { return f.Type == cluster.Quorum && f.Family == cluster.Family3 }

// wholeMillis is a TTL in milliseconds, rounded up; -1 is none.
func wholeMillis(ttl time.Duration) deadline.Millis {
	if ttl < 0 {
		return -1
	}
	return deadline.RoundUp(ttl)
}

const assumedConsumerTimeout = 30 * time.Minute

// HoldLimit is how long a message may be held before it is given back and taken again; 0 is forever.
func (f Facts) HoldLimit() time.Duration {
	if f.Family == cluster.Family43 {
		if f.Type == cluster.Quorum {
			return longestTimeout / 2
		}
		return 0 // classic queues have no timeout
	}
	if f.ConsumerTimeout <= 0 {
		return assumedConsumerTimeout / 2
	}
	return f.ConsumerTimeout / 2
}
