package keeper

import (
	"time"

	"curfew/broker/deadline"
)

// ages is what is known about the age of new messages: how long they have been in the queue, at most.
type ages struct {
	backlog     int              // messages that were ready when the take began and have not come yet
	caughtUp    bool             // all that was ready has been taken: a new message has just been published
	empty       bool             // the last look found no ready message; deliveries may still have been on their way
	drained     deadline.Instant // the last instant at which every message in the queue had been seen; 0 is unknown
	trustAt     deadline.Instant // a look that finds no ready message is trusted from then on
	cancelledAt deadline.Instant // when a consumer last ended
	lastOther   deadline.Instant // when another consumer was last seen
	clearAt     deadline.Instant // when the last look was asked for that was answered soon and found nothing waiting
	behind      bool             // the last look was answered late, or found messages that wait although all had been seen
}

// answered takes in a look that was asked for at that time, while messages are taken. It reports whether messages that have come since clearAt
// may have waited in the queue, since RabbitMQ or the keeper is slow.
func (a *ages) answered(now, asked deadline.Instant, ready int) (waited bool) {
	waits := a.caughtUp && ready > 0
	waited = now.Sub(asked) > toldWithin || waits && a.behind
	if a.behind = waits || waited; !a.behind {
		a.clearAt = asked
	}
	return waited
}

// begin starts over with that many ready messages.
func (a *ages) begin(now deadline.Instant, ready int) {
	a.backlog, a.caughtUp, a.empty = ready, ready == 0 && now >= a.trustAt, false
}

// looked takes in a look while messages are taken. Two in succession that find none ready show that all have come.
func (a *ages) looked(now deadline.Instant, ready int) {
	empty := ready == 0 && now >= a.trustAt
	a.caughtUp = a.caughtUp || empty && a.empty
	a.empty = empty
}

// came counts a delivery.
func (a *ages) came(taking bool) {
	if a.backlog > 0 {
		if a.backlog--; a.backlog == 0 && taking {
			a.caughtUp = true
		}
	}
}

// gap notes that messages are not seen at once from now on. It reports whether all had been seen.
func (a *ages) gap(now deadline.Instant) bool {
	if !a.caughtUp {
		return false
	}
	a.caughtUp, a.empty, a.drained = false, false, now
	return true
}

// unsure is how old a message with such a TTL may be if nothing about it is remembered.
func (a *ages) unsure(now deadline.Instant, redelivered bool, ttl time.Duration) time.Duration {
	switch {
	case !redelivered && a.caughtUp:
		return 0
	case a.caughtUp && now.Sub(a.cancelledAt) < lateWithin && a.othersLongGone(now, ttl):
		// A quorum queue had delivered it when its consumer was cancelled, and took it back.
		return 0
	case a.drained > 0 && (!redelivered || a.othersLongGone(now, ttl)):
		// It came after all had been seen. If it is redelivered, no other consumer can have had it, so it was on its way
		// to the keeper when a channel was lost.
		return min(ttl, now.Sub(a.drained))
	}
	return ttl
}

// othersLongGone reports that another consumer cannot have held any message with such a TTL.
func (a *ages) othersLongGone(now deadline.Instant, ttl time.Duration) bool {
	return a.lastOther == 0 || a.lastOther < now.Add(-ttl)
}
