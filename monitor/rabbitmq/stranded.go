package rabbitmq

import (
	"time"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

const (
	// strandedAfter is how long RabbitMQ has to count messages that nobody is given: its counts are seconds old.
	strandedAfter = 90 * time.Second
	// strandedLeast is how many they have to be.
	strandedLeast = 20
)

// stranded counts the messages of a queue that is kept and that RabbitMQ gives to nobody, so that they expire late.
//
// Some it holds for consumers that are gone: when a node dies, a quorum queue before 4.3 keeps the messages of the node's cancelled consumers until
// it has another leader. A keeper has such consumers for moments only (package keeper, "A node that goes down"), so that is bad luck. RabbitMQ does
// not say whose messages they are: they are those that it counts as unacknowledged beyond the ones that the keeper holds, while nobody else
// consumes. Others are ready, while a keeper that has taken all there was has a consumer for them. The keeper then tries another one (looks.neglects).
type stranded struct {
	since time.Time // zero: there are none
	least int64     // the fewest that were counted since then
	taken uint64    // what the keeper has taken until the last look: as long as that grows, what is ready is not stranded
}

// look compares what RabbitMQ counts with what the keeper holds.
func (s *stranded) look(q *cluster.Queue, k *keeper.Status, here bool) {
	var beyond int64
	if q.Type == cluster.Quorum && q.Unknown&cluster.UnknownUnacked == 0 {
		beyond = max(0, q.Unacked-int64(k.Held+k.Commands))
	}
	if k.CaughtUp && s.taken == k.Counts.Taken {
		beyond += int64(k.Ready)
	}
	s.taken = k.Counts.Taken
	if !here || k.State != keeper.Keeping || beyond < strandedLeast {
		*s = stranded{taken: s.taken}
		return
	}
	if s.since.IsZero() {
		*s = stranded{time.Now(), beyond, s.taken}
	}
	s.least = min(s.least, beyond)
}

// lookForStrandedLocked takes in what an inventory says about the queue's messages.
func (q *queue) lookForStrandedLocked(found *cluster.Queue) {
	if q.stop == nil || q.keeper == nil {
		q.stranded, q.stuck = stranded{}, undelivered{}
		return
	}
	s := q.keeper.Status()
	if q.rule.Mode != cluster.Keep {
		s.Ready = 0 // what is not held then is more than may be, which is told
		q.stuck.look(found.Discarded, s.Counts.Expired)
	}
	q.stranded.look(found, &s, q.turn == nil || q.turn.isHeld())
}

// messages returns how many there are; 0: none, or it is not certain yet.
func (s *stranded) messages() int64 {
	if s.since.IsZero() || time.Since(s.since) < strandedAfter {
		return 0
	}
	return s.least
}

// undeliveredAfter is how long RabbitMQ may take to deliver one of the messages that a delay queue has discarded: its counts are seconds old.
const undeliveredAfter = 45 * time.Second

// undelivered watches the messages that a delay queue has discarded. RabbitMQ's at-least-once dead-lettering has 32 of a queue in flight, and those that no
// queue takes stay there: others may wait behind them forever.
type undelivered struct {
	since time.Time // none has been delivered since then; zero: there are none
	left  int64     // how many wait
	gone  int64     // how many were delivered, by the counts of the keeper and of RabbitMQ
}

// look takes in how many wait, and how many the keeper has discarded since it began.
func (u *undelivered) look(left int64, discarded uint64) {
	now := undelivered{time.Now(), left, int64(discarded) - left}
	switch {
	case left == 0:
		now = undelivered{}
	case !u.since.IsZero() && now.gone <= u.gone: // lower: the keeper is another, or RabbitMQ's count was older
		now.since = u.since
	}
	*u = now
}

// messages returns how many there are; 0: none, or it is not certain yet.
func (u *undelivered) messages() int64 {
	if u.since.IsZero() || time.Since(u.since) < undeliveredAfter {
		return 0
	}
	return u.left
}
