package rabbitmq

import (
	"time"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/queuefacts"
)

const (
	// strandedAfter is how long RabbitMQ has to count more messages as unacknowledged than the keeper holds: its counts are
	// seconds old.
	strandedAfter = 90 * time.Second
	// strandedLeast is how many more they have to be.
	strandedLeast = 20
)

// stranded counts the messages that a kept quorum queue holds for consumers that are gone. When a node dies, a quorum queue before 4.3 keeps
// the messages of the node's cancelled consumers until it has another leader. Until then nobody can take them, and they expire late. A keeper
// has such consumers for moments only (package keeper, "A node that goes down"), so that is bad luck. RabbitMQ does not say whose messages
// they are: they are those that it counts as unacknowledged beyond the ones that the keeper holds, while nobody else consumes.
type stranded struct {
	since time.Time // zero: there are none
	least int64     // the fewest that were counted since then
}

// look compares how many messages RabbitMQ counts as unacknowledged with how many the keeper holds.
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

// lookForStrandedLocked takes in what an inventory says about the queue's messages.
func (q *queue) lookForStrandedLocked(found *cluster.Queue) {
	if q.stop == nil || q.keeper == nil {
		q.stranded = stranded{}
		return
	}
	s := q.keeper.Status()
	q.stranded.look(found, &s, q.turn == nil || q.turn.isHeld())
}

// messages returns how many there are; 0: none, or it is not certain yet.
func (s *stranded) messages() int64 {
	if s.since.IsZero() || time.Since(s.since) < strandedAfter {
		return 0
	}
	return s.least
}
