package keeper

import (
	"time"

	"curfew/broker/deadline"
)

// looks are what the queue's own counts say, twice a second: how many consumers there are beside the keeper's.
//
// A queue may count consumers of keepers that have gone: a quorum queue does so until it has done what it was asked to do, and until a lost node is
// back. So as many as have gone are excused, until the queue counts fewer, an event tells of an application's, or RabbitMQ's list
// (Facts.Others) names one. If nobody can see the list, that lasts for distrust, or for as long as all consumers of a lost connection are counted.
type looks struct {
	at        deadline.Instant // the next one
	goodAt    deadline.Instant // when the last one was answered with counts that can be trusted, or the connection began
	badAt     deadline.Instant // since when each look has counted fewer than the keeper has, or none; 0: the last look did not
	asked     bool             // an answer is on its way
	askedAt   deadline.Instant // since when
	seenAt    deadline.Instant // when a look last saw another consumer; 0: never
	phase     time.Duration    // by which the next look comes earlier
	ready     int
	others    int              // consumers that are not the keeper's
	extra     int              // consumers counted beside the keeper's
	extraAt   deadline.Instant // since when there have been some; 0: there are none
	changedAt deadline.Instant // when their number last changed, or an event last told of another consumer
	listAt    deadline.Instant // when to read the list again
	listed    bool             // the list can be seen
	inherits  bool             // another keeper had the lease before: what the first look counts is left behind by it
	first     bool             // no look since the connection was lost
	left      int              // consumers that a keeper has left behind, with a connection that was lost
	leftAt    deadline.Instant // when some were last counted; 0: there are none
	gone      int              // consumers that the keeper has ended
	goneAt    deadline.Instant // when the last one was
}

// plan plans the next look. The steps differ, so that looks cannot keep missing a consumer that comes at a fixed rate.
func (l *looks) plan(now deadline.Instant) {
	l.phase = (l.phase + lookStep) % lookVaries
	l.at = now.Add(lookEvery - l.phase)
}

// by makes the next look no later than at.
func (l *looks) by(at deadline.Instant) { l.at = min(l.at, at) }

// saw notes that a look has seen another consumer. It reports whether another look did within the last minute: the consumer may come so briefly that
// no two looks in succession see it.
func (l *looks) saw(now deadline.Instant) (again bool) {
	again = l.seenAt != 0 && now < l.seenAt.Add(seenWithin)
	l.seenAt = now
	return again
}

// leave notes that a keeper has left n consumers behind.
func (l *looks) leave(now deadline.Instant, n int) {
	if n > 0 {
		l.left, l.leftAt, l.first = l.left+n, now, true
	}
}

// takeList takes in Facts.Others. RabbitMQ's list may lack a consumer that came within listAge. It reports whether all that is counted has
// turned out to be a keeper's.
func (l *looks) takeList(now deadline.Instant, others Presence) (settled bool) {
	l.listed = others != Unclear
	switch {
	case others == Present:
		l.left, l.gone = 0, 0
	case others == Absent && l.leftAt != 0 && l.extra > 0 && now >= l.changedAt.Add(listAge):
		l.left, l.gone = l.extra, 0
		return true
	}
	return false
}

// recently reports whether a queue may still give back what consumers held whose connection was lost.
func (l *looks) recently(now deadline.Instant) bool {
	return l.left > 0 || l.leftAt != 0 && now < l.leftAt.Add(distrust)
}

// count returns how many of the counted consumers are neither the keeper's own nor excused. A quorum queue whose leader does not answer in time
// counts 0, which says nothing unless it goes on for long: ok is false then.
func (l *looks) count(now deadline.Instant, counted, own int) (n int, ok bool) {
	if counted < own || counted == 0 {
		if l.badAt == 0 || own > 0 && counted == 0 {
			l.badAt, l.extra = now, 0
		}
		if counted < own || now < l.badAt.Add(distrust) {
			return 0, false
		}
	} else {
		l.badAt = 0
	}
	if n = counted - own; n != l.extra {
		l.extra, l.changedAt = n, now
	}
	if l.inherits {
		l.leave(now, n)
	}
	if l.first { // one may have been lost before RabbitMQ had it
		l.left = min(l.left, n)
	}
	l.inherits, l.first = false, false
	if l.extraAt == 0 {
		l.extraAt = now
	}
	switch {
	case n == 0:
		l.left, l.leftAt, l.gone, l.extraAt = 0, 0, 0, 0
	case n < l.left && l.listed:
		l.left, l.gone = n, 0
	case n < l.left:
		l.left, l.gone = 0, 0
	case !l.listed && now >= l.goneAt.Add(distrust):
		l.gone = 0
	default:
		l.gone = min(l.gone, n-l.left)
	}
	if l.left > 0 {
		l.leftAt = now
	}
	return n - l.left - l.gone, true
}

// aside is how long other consumers are left alone.
type aside struct {
	span   time.Duration
	until  deadline.Instant
	tookAt deadline.Instant // when the keeper last began to take messages
}

// lengthen doubles the span if others came back soon after the last time.
func (a *aside) lengthen(now deadline.Instant, before bool) {
	if a.tookAt == 0 || now.Sub(a.tookAt) >= flapWithin || !before {
		a.span = firstAside
		return
	}
	a.span = min(max(2*a.span, shortAside), longestAside)
}

// consumerSeen takes in an event of RabbitMQ: a consumer that is not the keeper's has come.
func (c *core) consumerSeen(now deadline.Instant) {
	c.ages.lastOther, c.looks.changedAt = now, now
	if c.looks.others == 0 {
		c.looks.others = 1
	}
	c.standAside(now, reason{Consumer, "another consumer came"})
	c.looks.at = now
	c.advance(now)
}

// standAside gives the queue to the other consumers.
func (c *core) standAside(now deadline.Instant, why reason) {
	c.ages.lastOther = now
	switch {
	case c.state == Keeping:
		c.aside.lengthen(now, c.counts.Releases > 0)
		c.beginRelease(now, StandingAside, why)
	case c.state == Observing && c.connected:
		c.enter(now, StandingAside, why)
		c.aside.span = shortAside
	}
	c.aside.until = now.Add(c.aside.span)
}

// looked takes in the answer to a look that began in epoch.
func (c *core) looked(now deadline.Instant, epoch uint32, ready, consumers int, why failure, text string, ok bool) {
	l := &c.looks
	l.asked = false
	if !c.connected || c.state == Stopped {
		return
	}
	if !ok {
		c.lookFailed(now, why, text)
		return
	}
	l.ready = ready
	if c.state == Observing && c.reason == noQueue {
		c.enter(now, Observing, looking)
	}
	if (l.left > 0 || l.gone > 0 || l.leftAt != 0) && l.extraAt != 0 && now >= max(l.listAt, l.extraAt.Add(distrust)) {
		l.listAt = now.Add(listAge)
		c.line.out = append(c.line.out, command{do: learn})
	}
	if c.state == Keeping || c.state == Releasing {
		c.lookedWhileHolding(now, epoch, consumers)
		return
	}
	if l.inherits && ready > 0 {
		c.ages.trustAt = now // what counts 0 may only have been restarted; this does not
	}
	var sure bool
	if l.others, sure = l.count(now, consumers, 0); sure {
		l.goodAt = now
	}
	if l.others > 0 {
		c.ages.lastOther = now
	}
	if ready == 0 && c.state != Observing && now < c.ages.lastOther.Add(distrust) {
		c.given.pass() // the others have taken all there was
	}
	switch {
	case c.state == Observing && c.stale:
		l.at = now.Add(time.Second)
		c.line.out = append(c.line.out, command{do: learn})
		return
	case c.state == Observing && l.others > 0:
		c.standAside(now, reason{Consumer, "other consumers are there"})
	case c.state == StandingAside && l.others > 0:
		c.aside.until = now.Add(c.aside.span)
	case c.state == Observing || c.state == StandingAside && now >= c.aside.until:
		c.beginKeeping(now)
	case c.state == Refused && !c.refusal.sticky && ready < c.refusal.readyBelow:
		c.enter(now, Observing, reason{Looking, "few enough messages"})
		c.refusal.readyBelow = 0
		l.at = now
	}
	c.advance(now)
}

func (c *core) lookFailed(now deadline.Instant, why failure, text string) {
	switch why {
	case queueGone:
		c.forgetQueue(now)
		c.looks.at = now.Add(time.Second)
	case forbidden:
		c.refuse(now, refusal{reason: reason{Permission, text}, retryAt: now.Add(retryRefused)})
		c.looks.at = now.Add(retryRefused)
	default:
		c.looks.at = now.Add(time.Second)
	}
	c.advance(now)
}

// forgetQueue drops all that is known: the queue was deleted, and its messages with it.
func (c *core) forgetQueue(now deadline.Instant) {
	c.loseAll(now)
	c.given.forget()
	c.ages.caughtUp, c.ages.drained, c.ages.backlog = false, now, 0
	c.looks.others, c.looks.left, c.looks.leftAt, c.looks.gone = 0, 0, 0, 0
	c.restarted, c.stale = false, true
	if c.state != Stopped && !c.refusal.sticky {
		c.enter(now, Observing, noQueue)
	}
}

// lookedWhileHolding compares the number of consumers with that of the keeper's own, if the latter has not changed since the look began.
func (c *core) lookedWhileHolding(now deadline.Instant, epoch uint32, consumers int) {
	l := &c.looks
	if s := c.line.tail(); c.taking() && s != nil && s.phase == live && consumers > 0 {
		c.ages.looked(now, l.ready)
		if since := c.ages.clearAt; c.ages.answered(now, l.askedAt, l.ready) {
			c.line.held.doubt(&c.line, since)
		}
		if c.renewal.began != 0 {
			l.by(now.Add(lookAgain))
		}
	}
	if epoch != c.line.epoch || c.line.opening() || c.release.going { // a consumer of the keeper's may be counted or not
		l.by(now.Add(lookAgain))
		c.advance(now)
		return
	}
	others, ok := l.count(now, consumers, len(c.line.stretches))
	switch {
	case ok:
		l.goodAt, l.others = now, others
		if others == 0 {
			break
		}
		if l.saw(now) {
			c.standAside(now, reason{Consumer, "another consumer came"})
		} else {
			l.by(now.Add(lookSurely))
		}
	case consumers > 0 && now >= l.badAt.Add(distrust): // the queue was declared again
		c.loseAll(now)
	}
	c.advance(now)
}

func (c *core) beginKeeping(now deadline.Instant) {
	if c.looks.ready > c.cfg.limit {
		c.refuse(now, refusal{reason: reason{Budget, "more messages than may be held"}, readyBelow: max(1, c.cfg.limit*8/10)})
		return
	}
	c.enter(now, Keeping, reason{NoConsumer, "no other consumer"})
	c.aside.tookAt = now
	c.beginTake(now, c.looks.ready)
}

// beginTake begins to take what is in the queue, about that many messages.
func (c *core) beginTake(now deadline.Instant, ready int) {
	c.openAt = now
	c.renewal.probeAt, c.renewal.spent = never, false
	c.ages.begin(now, ready)
}
