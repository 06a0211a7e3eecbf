package rabbitmq

import (
	"time"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/queuefacts"
)

const (
	// strandedAfter is how long a quorum queue has to hold more than its keeper does: RabbitMQ's counts are seconds old.
	strandedAfter = 90 * time.Second
	// strandedLeast is how many messages more.
	strandedLeast = 20
)

// stranded is what a kept quorum queue holds for consumers that are gone. When a node dies, such a queue before 4.3 keeps what
// the node's cancelled consumers held until it has another leader; nobody can take these messages meanwhile, and they expire late.
// A keeper has such consumers for moments only (package keeper, "A node that goes down"), so it takes bad luck. RabbitMQ does not say whose
// they are: they are what it counts as unacknowledged beyond what the keeper holds, while nobody else consumes.
type stranded struct {
	since time.Time // zero: there are none
	least int64     // the fewest that were counted since
}

// look notes how many messages a queue counts as unacknowledged and its keeper holds at present.
func (s *stranded) look(q *cluster.Queue, k *keeper.Status, here bool) {
	beyond := q.Unacked - int64(k.Held)
	if !here || q.Type != queuefacts.Quorum || k.State != keeper.Keeping || q.Unknown&cluster.UnknownUnacked != 0 || beyond < strandedLeast {
		*s = stranded{}
		return
	}
	if s.since.IsZero() {
		*s = stranded{time.Now(), beyond}
	}
	s.least = min(s.least, beyond)
}

// lookForStrandedLocked takes in what an inventory says of the queue's messages.
func (q *queue) lookForStrandedLocked(found *cluster.Queue) {
	if q.stop == nil || q.keeper == nil {
		q.stranded = stranded{}
		return
	}
	s := q.keeper.Status()
	q.stranded.look(found, &s, q.turn == nil || q.turn.isHeld())
}

// messages is how many there are; 0: none, or it is not certain yet.
func (s *stranded) messages() int64 {
	if s.since.IsZero() || time.Since(s.since) < strandedAfter {
		return 0
	}
	return s.least
}
