package keeper

import (
	"time"

	"curfew/broker/deadline"
)

// opened takes in that the stretch's consumer exists; its deliveries follow.
func (c *core) opened(now deadline.Instant, id uint32) {
	s := c.line.byID[id]
	if s == nil || s.phase != opening {
		return
	}
	s.phase = live
	c.line.epoch++
	if r := c.rolls.present; r != nil {
		r.lastAt = now
	}
	c.advance(now)
}

// deliver takes in a delivery to the stretch's consumer.
func (c *core) deliver(now deadline.Instant, id uint32, tag uint64, m message) {
	s := c.line.byID[id]
	if s == nil {
		return
	}
	e, known := c.judge(now, s, m)
	if r := c.rolls.present; r != nil && s == r.replacement {
		e.flags |= r.came(now, m, known)
	}
	c.takeIn(now, s, tag, m, e)
	c.advance(now)
}

// stray takes in a delivery to a consumer that was put back to take nothing: RabbitMQ delivers again all that it holds, so all of the stretch is
// taken again.
func (c *core) stray(now deadline.Instant, id uint32) {
	if s := c.line.byID[id]; s != nil {
		s.probeAt = now
		c.rolls.by(now)
		c.advance(now)
	}
}

// takeIn holds a message that the stretch's consumer received, and refuses the queue if that exceeds a limit.
func (c *core) takeIn(now deadline.Instant, s *stretch, tag uint64, m message, e entry) {
	c.counts.Taken++
	if !m.redelivered {
		c.seen.Add(wholeMillis(m.ttl), wholeMillis(c.facts.TTL))
	}
	c.ages.came(c.taking())
	e.tag, e.fingerprint, e.size = tag, m.fingerprint, uint32(min(m.size, 1<<32-1))
	if limit := c.facts.HoldLimit(); limit > 0 && s.held == 0 {
		c.rolls.by(now.Add(limit))
	}
	if c.facts.spends(m.returns) {
		s.spent, s.probeAt = true, never
	}
	c.line.add(now, s, e)
	if c.taking() {
		if r := c.cfg.exceeded(c.facts, &c.line.held, m); r != nil {
			c.refuse(now, *r)
		}
	}
}

// judge works out when a message expires. known reports whether it was held before.
func (c *core) judge(now deadline.Instant, s *stretch, m message) (e entry, known bool) {
	ttl := m.ttl
	if c.facts.TTL >= 0 && (ttl < 0 || c.facts.TTL < ttl) {
		ttl = c.facts.TTL
	}
	if ttl < 0 {
		return entry{deadline: never, due: never}, m.redelivered
	}
	step := time.Duration(c.facts.probeShare() * float64(ttl))
	probe := func(from deadline.Instant) {
		if e.flags&unknownAge != 0 && step > 0 {
			c.rolls.probe(s, e, from.Add(max(step, leastProbe)))
		}
	}
	// A quorum queue that loses the node of a connection delivers again, without the flag, what it had delivered there.
	if m.redelivered || c.line.quorum && (!c.ages.caughtUp || now < c.ages.trustAt || c.looks.recently(now)) {
		if r, ok := c.given.take(now, m.fingerprint); ok {
			e = entry{deadline: r.deadline, due: max(r.deadline, now), flags: r.flags &^ strayed, early: r.early}
			probe(now)
			return e, r.flags&strayed == 0
		}
	}
	latest, unsure := now.Add(ttl), c.ages.unsure(now, m.redelivered, ttl)
	if m.redelivered {
		if r, ok := c.given.left.take(m.fingerprint); ok {
			c.counts.Early++
			if after, again := r.retry(); again {
				return entry{deadline: r.deadline, due: now.Add(after), flags: r.flags, early: r.early + 1}, false
			}
			unsure, e.early = ttl, r.early
			if r.deadline > now {
				latest = r.deadline
			}
		}
	} else if !c.ages.caughtUp && c.rolls.present == nil {
		c.given.pass()
	}
	e.deadline, e.due = latest, latest
	waited := unsure
	if c.ages.behind && unsure == 0 {
		waited = min(ttl, now.Sub(c.ages.clearAt))
	}
	if waited > toldWithin {
		e.flags |= untold
	}
	if unsure > max(step, quiet) {
		e.flags |= unknownAge
		c.counts.UnknownAge++
	}
	if at := m.published.Add(ttl); e.flags&uncertain != 0 && m.published > 0 && at > now && at < latest {
		e.flags |= hinted
		e.due = max(at, latest.Add(-waited))
	}
	probe(max(now, latest.Add(-unsure)))
	c.fresh = append(c.fresh, Shadow{m.fingerprint, e.deadline, e.flags&uncertain != 0})
	return e, false
}

// ended takes in that the stretch's consumer is gone and all its deliveries have been handed over.
func (c *core) ended(now deadline.Instant, id uint32) {
	s := c.line.byID[id]
	if s == nil || c.line.consumer != s {
		return
	}
	asked := s.phase == cancelling
	s.phase, c.ages.cancelledAt = sealed, now
	c.line.cancelled(now, s)
	c.line.epoch++
	if !asked { // RabbitMQ cancelled it: the queue was deleted, moved, or its consumer timed out
		c.loseAll(now)
	}
	c.line.dropIfEmpty(s)
	c.advance(now)
}

// loseAll gives up all channels, and begins to take the queue again: it may be a new queue of the same name, without the messages held.
func (c *core) loseAll(now deadline.Instant) {
	c.beginGap(now)
	gone := c.line.gone + c.line.own()
	for _, s := range c.line.stretches {
		c.line.do(command{do: drop, stretch: s.id})
	}
	c.line.forgetAll()
	c.line.gone, c.rolls.present, c.given.rolled = gone, nil, nil
	c.looks.at, c.looks.fewAt, c.openAt = now, 0, now.Add(2*lookAgain)
}

// lost takes in that RabbitMQ closed the stretch's channel: its messages are ready again.
func (c *core) lost(now deadline.Instant, id uint32, why failure, text string) {
	s := c.line.byID[id]
	if s == nil {
		return
	}
	c.line.lose(s)
	c.looks.at = now
	switch why {
	case timedOut:
		if timeout := timeoutIn(text); timeout > 0 {
			c.timeout, c.facts.ConsumerTimeout = timeout, timeout
			c.rolls.by(now)
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
	if s == nil || c.line.giving != s {
		return
	}
	c.line.lose(s)
	c.line.do(command{do: drop, stretch: s.id})
	c.advance(now)
}

// settled takes in that the messages of the stretch that were given back one by one are in the queue.
func (c *core) settled(now deadline.Instant, id uint32) {
	s := c.line.byID[id]
	if s == nil || c.line.settling != s {
		return
	}
	c.line.settling = nil
	c.line.dropIfEmpty(s)
	c.advance(now)
}

// advanceTake keeps one consumer going, seals a full stretch, and rolls stretches when they are due.
func (c *core) advanceTake(now deadline.Instant) {
	if s := c.line.consumer; s != nil {
		r := c.rolls.present
		switch {
		case r != nil && s == r.replacement:
			if r.got >= r.want || r.newcomer || r.replacement.held >= r.asked || now >= r.quietUntil() {
				c.line.cancelConsumer()
			}
		case c.line.isFull():
			if !c.ages.caughtUp && c.cfg.takeRate > 0 {
				c.openAt = max(c.openAt, c.line.openedAt.Add(time.Duration(c.cfg.perChannel)*time.Second/time.Duration(c.cfg.takeRate)))
			}
			c.line.cancelConsumer()
		case r == nil && c.findRoll(now):
			c.line.cancelConsumer()
		}
		return
	}
	if c.rolls.present != nil || c.findRoll(now) {
		c.advanceRoll(now)
		if c.rolls.present != nil {
			return
		}
	}
	if now < c.openAt {
		return
	}
	if last := c.line.tail(); last != nil && last.held <= c.cfg.perChannel/2 && len(last.holds) < 64 {
		c.line.consumeOn(now, last, c.cfg.perChannel-last.held)
		return
	}
	c.line.openTail(now, c.cfg.perChannel)
}

// findRoll begins a roll if one is due.
func (c *core) findRoll(now deadline.Instant) bool {
	if !c.ages.caughtUp || c.looks.doubtAt != 0 || !c.rolls.begin(now, &c.line, c.facts, c.cfg.perChannel) {
		return false
	}
	c.counts.Rolls++
	return true
}
