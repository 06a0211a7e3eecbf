package keeper

import (
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/queuefacts"
)

// opened takes in that the stretch's consumer exists; its deliveries follow.
func (c *core) opened(now deadline.Instant, id uint32) {
	if s := c.line.byID[id]; s != nil && s.phase == opening {
		s.phase = live
		c.line.epoch++
		c.advance(now)
	}
}

// deliver takes in a delivery to the stretch's consumer.
func (c *core) deliver(now deadline.Instant, id uint32, tag uint64, m message) {
	if s := c.line.byID[id]; s != nil {
		c.takeIn(now, s, tag, m, c.judge(now, m))
		c.advance(now)
	}
}

// takeIn holds a message that the stretch's consumer received, and refuses the queue if that exceeds a limit.
func (c *core) takeIn(now deadline.Instant, s *stretch, tag uint64, m message, e entry) {
	c.counts.Taken++
	if m.redelivered {
		c.counts.Redelivered++
	} else {
		c.seen.Add(wholeMillis(m.ttl), wholeMillis(c.facts.TTL))
	}
	c.ages.came(c.taking())
	e.tag, e.fingerprint, e.size = tag, m.fingerprint, uint32(min(m.size, 1<<32-1))
	if c.facts.spends(m.returns) {
		c.renewal.spent, c.renewal.probeAt = true, never
	}
	c.line.add(now, s, e)
	if c.taking() {
		if r := c.cfg.exceeded(c.facts, &c.line.held, m); r != nil {
			c.refuse(now, *r)
		}
	}
}

// judge works out when a message expires.
func (c *core) judge(now deadline.Instant, m message) (e entry) {
	ttl := m.ttl
	if c.facts.TTL >= 0 && (ttl < 0 || c.facts.TTL < ttl) {
		ttl = c.facts.TTL
	}
	if ttl < 0 {
		return entry{deadline: never, due: never}
	}
	step := time.Duration(c.facts.probeShare(c.cfg.probeShare) * float64(ttl))
	probe := func(from deadline.Instant) {
		if e.flags&unknownAge != 0 && step > 0 {
			c.renewal.probe(e, from.Add(max(step, leastProbe)))
		}
	}
	renewing := c.renewal.began != 0
	// A quorum queue that loses the node of a connection delivers again, without the flag, what it had delivered there.
	if m.redelivered || c.facts.Type == queuefacts.Quorum && !renewing && (!c.ages.caughtUp || now < c.ages.trustAt || c.looks.recently(now)) {
		if r, ok := c.given.take(now, m.fingerprint); ok {
			e = entry{deadline: r.deadline, due: max(r.deadline, now), flags: r.flags, early: r.early}
			probe(now)
			return e
		}
	}
	latest, unsure := now.Add(ttl), c.ages.unsure(now, m.redelivered, ttl)
	waited := unsure
	switch {
	case m.redelivered:
		r, ok := c.given.left.take(m.fingerprint)
		if !ok {
			break
		}
		c.counts.Early++
		if after, again := r.retry(); again {
			return entry{deadline: r.deadline, due: now.Add(after), flags: r.flags, early: r.early + 1}
		}
		unsure, waited, e.early = ttl, ttl, r.early
		if r.deadline > now {
			latest = r.deadline
		}
	case renewing: // it was published since everything was given back, before which all had been seen
		unsure, waited = 0, min(ttl, now.Sub(c.renewal.began))
	case !c.ages.caughtUp:
		c.given.pass()
	case c.ages.behind:
		waited = min(ttl, now.Sub(c.ages.clearAt))
	}
	e.deadline, e.due = latest, latest
	if waited > toldWithin {
		e.flags |= untold
	}
	if unsure > max(step, toldWithin) {
		e.flags |= unknownAge
		c.counts.UnknownAge++
	}
	if at := m.published.Add(ttl); e.flags&uncertain != 0 && m.published > 0 && at > now && at < latest {
		e.flags |= hinted
		e.due = max(at, latest.Add(-waited))
	}
	probe(max(now, latest.Add(-unsure)))
	c.fresh = append(c.fresh, Shadow{m.fingerprint, e.deadline, e.flags&uncertain != 0})
	return e
}

// ended takes in that the stretch's consumer is gone and all its deliveries have been handed over.
func (c *core) ended(now deadline.Instant, id uint32) {
	s := c.line.byID[id]
	if s == nil {
		return
	}
	c.line.epoch++
	if s.phase != closing { // RabbitMQ cancelled it: the queue was deleted, moved, or its consumer timed out
		c.loseAll(now)
	}
	s.phase = sealed
	c.advance(now)
}

// gone notes that consumers of the keeper's have gone: a quorum queue does what it is asked to in its own time, and counts them until then.
func (c *core) gone(now deadline.Instant, n int) {
	if c.facts.Type == queuefacts.Quorum {
		c.looks.gone, c.looks.goneAt = c.looks.gone+n, now
	}
}

// loseAll gives up all channels, and begins to take the queue again: it may be a new queue of the same name, without the messages held.
func (c *core) loseAll(now deadline.Instant) {
	c.beginGap(now)
	for _, s := range c.line.stretches {
		c.line.do(drop, s)
	}
	c.gone(now, len(c.line.stretches))
	c.line.forgetAll()
	c.looks.at, c.looks.badAt, c.openAt = now, 0, now.Add(2*lookAgain)
	if c.state == Releasing {
		c.released(now)
	}
}

// lost takes in that RabbitMQ closed the stretch's channel: its messages are ready again.
func (c *core) lost(now deadline.Instant, id uint32, why failure, text string) {
	s := c.line.byID[id]
	if s == nil {
		return
	}
	c.line.forget(s)
	c.line.remove(s)
	c.looks.at = now
	switch why {
	case timedOut:
		if timeout := timeoutIn(text); timeout > 0 {
			c.timeout, c.facts.ConsumerTimeout = timeout, timeout
		}
		c.openAt = max(c.openAt, now.Add(lookAgain))
	case forbidden, noChannel:
		c.refuse(now, refusal{reason: reason{Permission, text}, retryAt: now.Add(retryRefused)})
	case locked:
		c.standAside(now, reason{Consumer, "another consumer is exclusive"})
	case queueGone, unavailable:
		c.openAt = now.Add(time.Second)
	default:
		c.openAt = max(c.openAt, now.Add(lookAgain))
	}
	c.advance(now)
}

// returned takes in that all of the stretch is back in its queue.
func (c *core) returned(now deadline.Instant, id uint32) {
	s := c.line.byID[id]
	if s == nil || s.phase != returning {
		return
	}
	c.line.remove(s)
	c.line.do(drop, s)
	c.gone(now, 1)
	c.advance(now)
}

// wantsConsumer reports whether the last stretch is so full that another one has to follow. Its consumer keeps room while the next one is opened, or
// stretches before it would take what comes: while a backlog is taken, these have none.
func (c *core) wantsConsumer() bool {
	tail, full := c.line.tail(), c.cfg.perChannel
	if c.ages.caughtUp {
		full = max(1, full/2)
	}
	return tail == nil || tail.held >= full
}

// hasRoom reports whether the last stretch can take more. Nothing is given back until then: the room that this makes in an earlier stretch would be
// filled with what comes later in the queue.
func (c *core) hasRoom() bool {
	tail := c.line.tail()
	return tail != nil && tail.phase == live && tail.held < c.cfg.perChannel
}

// advanceTake keeps one consumer going that takes what is new, and renews what is held.
func (c *core) advanceTake(now deadline.Instant) {
	if n := c.line.dropEmpty(); n > 0 {
		c.gone(now, n)
	}
	if r := &c.renewal; r.began != 0 && c.ages.caughtUp {
		c.given.renewedAt, r.free = now, now.Add(max(settleAll, renewShare*now.Sub(r.began)))
		r.began = 0
	}
	switch {
	case c.line.opening():
	case c.ages.caughtUp && now >= c.renewal.at(&c.line, c.facts, c.cfg.perChannel):
		c.counts.Rolls++
		c.counts.Rolled += uint64(c.line.held.count)
		c.beginRelease(now, Keeping, c.reason)
		c.advanceRelease(now)
	case c.wantsConsumer() && now >= c.openAt:
		c.line.open()
	}
}
