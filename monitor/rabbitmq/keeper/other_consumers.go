package keeper

import (
	"cmp"
	"time"

	"curfew/broker/deadline"
)

// looks are what the queue's own counts say, twice a second or, while nothing is unclear, as often as Options.LookEvery says.
type looks struct {
	at        deadline.Instant // the next one
	goodAt    deadline.Instant // when the last one was answered with counts that can be trusted, or the connection began
	asked     bool             // an answer is on its way
	askedAt   deadline.Instant // since when
	leftAt    deadline.Instant // when something left behind was last counted
	suspected deadline.Instant // until when one more look that sees another consumer is enough; never: until a look sees none
	phase     time.Duration    // by which the next look comes earlier
	doubtAt   deadline.Instant // since when looks have seen more consumers that may be the keeper's, or since the list was asked for; 0: the last look did not
	gone      int              // of the keeper's consumers, when the number last changed
	goneAt    deadline.Instant // when that was
	ready     int
	taken     uint64           // deliveries until the last look
	others    int              // consumers that are not the keeper's
	elsewhere int              // consumers that are not on the present connection
	changedAt deadline.Instant // when their number last changed
	wantList  bool             // RabbitMQ's list may show whose they are, once it is new enough
	listed    bool             // the list can be seen, now or soon
	cameAt    deadline.Instant // when an event last told of another consumer
	left      int              // consumers that count as left behind by a keeper
	anyLeft   bool             // there were some, and no look since then has counted the keeper's own consumers alone
	inherits  bool             // another keeper had the lease before: what the first look counts is left behind by it
	zeroAt    deadline.Instant // since when each look has counted no consumer; 0: the last look counted some
	fewAt     deadline.Instant // since when each look has counted fewer consumers than the keeper has; 0: the last look did not
	neglected time.Duration    // after how long a consumer is replaced that is not given what is ready; 0: the last look found little
	neglectAt deadline.Instant // when that is
}

// neglects reports whether RabbitMQ has not given the consumer what is ready for so long that another one is to try: every look has found much.
// The time doubles with each try.
func (l *looks) neglects(now deadline.Instant, idle bool) bool {
	switch {
	case !idle || l.ready < neglectLeast:
		l.neglected = 0
	case l.neglected == 0:
		l.neglected, l.neglectAt = neglectFor, now.Add(neglectFor)
	case now >= l.neglectAt:
		l.neglected *= 2
		l.neglectAt = now.Add(l.neglected)
		return true
	}
	return false
}

// mayBeGone reports whether consumers that are counted may be gone ones of the keeper's, which a queue counts until it has done what it
// was asked to do. If none has gone for a while, and RabbitMQ's list cannot say whose they are, they are an application's.
func (l *looks) mayBeGone(now deadline.Instant, gone int) bool {
	if gone != l.gone {
		l.gone, l.goneAt = gone, now
	}
	return l.listed || now < l.goneAt.Add(distrustZero)
}

// planLook plans the next look. The steps differ, so that looks cannot keep missing a consumer that comes at a fixed rate.
func (c *core) planLook(now deadline.Instant) {
	l, every := &c.looks, lookEvery
	sure := l.others+l.left == 0 && l.fewAt == 0 && l.zeroAt == 0 && l.doubtAt == 0 && l.suspected == 0
	if sure && c.cfg.lookEvery != nil && c.taking() && c.ages.caughtUp && !c.ages.behind {
		every = max(every, c.cfg.lookEvery())
	}
	l.phase = (l.phase + lookStep) % lookVaries
	l.at = now.Add(every - l.phase)
}

// leave notes that a keeper has left up to n consumers behind, on a connection that was lost with its node. A quorum queue goes on counting
// them until the node is back.
func (l *looks) leave(n int) {
	l.left += n
	l.anyLeft = l.anyLeft || n > 0
}

// takeList takes in Facts.Others. RabbitMQ's list may lack a consumer that came within listAge. It reports whether all that is counted has
// turned out to be left behind.
func (l *looks) takeList(now deadline.Instant, others Presence) (settled bool) {
	l.listed = others != Unlisted
	switch {
	case others == Present:
		l.left = 0
	case others == Absent && l.unsure() && now >= l.changedAt.Add(listAge):
		l.left = l.elsewhere
		return true
	case others == Absent:
		l.wantList = true
	}
	return false
}

// recently reports whether a queue may still give back what consumers held that were left behind.
func (l *looks) recently(now deadline.Instant) bool {
	return l.left > 0 || now < l.leftAt.Add(distrustZero)
}

// unsure reports whether only RabbitMQ's list can tell whose consumers are counted.
func (l *looks) unsure() bool { return l.anyLeft && l.elsewhere > 0 }

// strangers returns how many of the counted consumers are neither the keeper's own nor left behind. Those left behind go all at once or, on
// 3.10 and 4.3, not all: what is still counted then is taken for them until RabbitMQ's list names an application's, or for an application's if
// nobody may see that list. A quorum queue whose leader does not answer in time counts 0, which says nothing unless it goes on for long: ok
// is false then.
func (l *looks) strangers(now deadline.Instant, counted, own int) (n int, ok bool) {
	switch {
	case counted > 0:
		l.zeroAt = 0
	case l.zeroAt == 0:
		l.zeroAt, l.elsewhere = now, 0
	}
	if counted < own || counted == 0 && now < l.zeroAt.Add(distrustZero) {
		return 0, false
	}
	if n = counted - own; n != l.elsewhere {
		l.elsewhere, l.changedAt, l.wantList = n, now, true
	}
	switch {
	case n == 0:
		l.left, l.anyLeft = 0, l.anyLeft && counted == 0
	case l.inherits:
		l.leave(n)
	case n < l.left && l.listed && now >= l.cameAt.Add(listAge):
		l.left = n
	case n < l.left:
		l.left = 0
	}
	l.inherits = false
	if l.left > 0 {
		l.leftAt = now
	}
	return n - l.left, true
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
	c.ages.lastOther, c.looks.changedAt, c.looks.cameAt = now, now, now
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
	c.looks.asked = false
	if !c.connected || c.state == Stopped {
		return
	}
	if !ok {
		c.lookFailed(now, why, text)
		return
	}
	c.looks.ready = ready
	if c.state == Observing && c.reason == noQueue {
		c.enter(now, Observing, looking)
	}
	if c.looks.wantList && c.looks.unsure() && now >= c.looks.changedAt.Add(listAge) {
		c.looks.wantList = false
		c.line.out = append(c.line.out, command{do: learn})
	}
	if c.taking() || c.state == Releasing {
		c.lookedWhileHolding(now, epoch, consumers)
		return
	}
	if c.looks.inherits && ready > 0 {
		c.ages.trustAt = now // what counts 0 may only have been restarted; this does not
	}
	c.looks.doubtAt = 0
	var sure bool
	if c.looks.others, sure = c.looks.strangers(now, consumers, 0); sure {
		c.looks.goodAt = now
	}
	if c.looks.others > 0 {
		c.ages.lastOther = now
	} else {
		c.line.gone = 0
	}
	if ready == 0 && c.state != Observing && now < c.ages.lastOther.Add(distrustZero) {
		c.given.pass() // the others have taken all there was
	}
	switch c.state {
	case Observing:
		if c.stale {
			c.looks.at = now.Add(time.Second)
			c.line.out = append(c.line.out, command{do: learn})
			return
		}
		if c.looks.others > 0 {
			c.standAside(now, reason{Consumer, "other consumers are there"})
		} else {
			c.beginKeeping(now)
		}
	case StandingAside:
		c.lookedAside(now)
	case Refused:
		if c.refusal.readyBelow > 0 && ready < c.refusal.readyBelow {
			c.enter(now, Observing, reason{Looking, "few enough messages"})
			c.refusal.readyBelow = 0
			c.looks.at = now
		}
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
	c.given = givenBack{expired: c.given.expired}
	c.ages.caughtUp, c.ages.drained, c.ages.backlog = false, now, 0
	c.looks.others, c.looks.left, c.looks.anyLeft = 0, 0, false
	c.restarted, c.stale = false, true
	if c.state == Releasing {
		c.released(now)
	}
	if c.state != Stopped {
		c.enter(now, Observing, noQueue)
	}
}

// lookedWhileHolding compares the number of consumers with that of the keeper's own, if the latter has not changed since the look began.
func (c *core) lookedWhileHolding(now deadline.Instant, epoch uint32, consumers int) {
	if s := c.line.consumer; c.taking() && s != nil && s.phase == live && consumers > 0 {
		c.ages.looked(now, c.looks.ready)
		if since := c.ages.clearAt; c.ages.answered(now, c.looks.askedAt, c.looks.ready) {
			c.line.held.doubt(&c.line, since)
		}
		idle := c.looks.taken == c.counts.Taken // a busy queue may have as many ready at each look
		if c.looks.taken = c.counts.Taken; c.rolls.present == nil && c.looks.neglects(now, c.ages.caughtUp && idle) {
			c.line.cancelConsumer()
		}
	}
	if s := c.line.consumer; epoch != c.line.epoch || s != nil && s.phase == opening { // its consumer may be counted or not
		c.looks.at = now.Add(lookAgain)
		return
	}
	others, ok := c.looks.strangers(now, consumers, c.line.own())
	if !ok {
		if c.looks.fewAt == 0 || consumers == 0 {
			c.looks.fewAt = now
		} else if now >= c.looks.fewAt.Add(distrustZero) {
			c.loseAll(now)
		}
		return
	}
	c.looks.fewAt, c.looks.goodAt = 0, now
	doubtAt := c.looks.doubtAt
	c.looks.others, c.looks.doubtAt = others, 0
	switch {
	case others == 0:
		if c.looks.suspected == never {
			c.looks.suspected = 0
		}
		if c.looks.left == 0 {
			c.line.gone = 0
		}
	case others <= c.line.gone && c.looks.mayBeGone(now, c.line.gone):
		c.looks.others, c.looks.doubtAt = 0, cmp.Or(doubtAt, now)
		c.looks.at = now.Add(lookSurely)
		if now >= c.looks.doubtAt.Add(goneWithin) { // RabbitMQ's list may name an application's
			c.looks.doubtAt = now
			c.line.out = append(c.line.out, command{do: learn})
		}
	case now >= c.looks.suspected:
		c.looks.suspected = never
		if c.line.gone == 0 && c.looks.left == 0 { // the number is certain, and it may come so briefly that no two looks in succession see it
			c.looks.suspected = now.Add(glimpsesWithin)
		}
		c.looks.at = now.Add(lookSurely)
	default:
		c.standAside(now, reason{Consumer, "another consumer came"})
		c.advance(now)
	}
}

func (c *core) lookedAside(now deadline.Instant) {
	switch {
	case c.looks.others > 0:
		c.aside.until = now.Add(c.aside.span)
	case now >= c.aside.until:
		c.beginKeeping(now)
	}
}

func (c *core) beginKeeping(now deadline.Instant) {
	if c.looks.ready > c.cfg.limit {
		c.refuse(now, refusal{reason: reason{Budget, "more messages than may be held"}, readyBelow: max(1, c.cfg.limit*8/10)})
		return
	}
	c.enter(now, Keeping, reason{NoConsumer, "no other consumer"})
	c.beginTake(now)
}

func (c *core) beginTake(now deadline.Instant) {
	c.aside.tookAt = now
	c.rolls.compactBy(now.Add(compactEvery))
	c.openAt = now
	c.ages.begin(now, c.looks.ready)
}
