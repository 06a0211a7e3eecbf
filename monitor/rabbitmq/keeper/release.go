package keeper

import "curfew/broker/deadline"

// release is the giving back of all that was held.
type release struct {
	going    bool  // everything is being given back
	next     State // which follows. Keeping: everything is taken again at once (renewal)
	why      reason
	at       deadline.Instant // when it began
	messages int              // how many were held then
	last     Release          // the last one that has ended
}

// advanceRelease ends all consumers, and then gives everything back in the order of the queue, one stretch after another.
func (c *core) advanceRelease(now deadline.Instant) {
	l := &c.line
	if !l.close() {
		return
	}
	if l.held.count > 0 {
		l.forget(nil)
	}
	switch {
	case len(l.stretches) == 0:
		c.released(now)
	case l.stretches[0].phase == sealed:
		l.stretches[0].phase = returning
		l.do(giveBackAll, l.stretches[0])
	}
}

// beginRelease begins to give everything back; next is the state that follows.
func (c *core) beginRelease(now deadline.Instant, next State, why reason) {
	r := &c.release
	r.next, r.why = next, why
	if c.state == Releasing {
		return
	}
	if c.state != Keeping && len(c.line.stretches) == 0 {
		c.enter(now, next, why)
		return
	}
	if !r.going {
		r.at, r.messages = now, c.line.held.count
	}
	c.beginGap(now)
	r.going = true
	if next != Keeping {
		c.enter(now, Releasing, why)
	}
}

func (c *core) released(now deadline.Instant) {
	r := &c.release
	r.going = false
	c.looks.at = now
	if r.next == Keeping {
		c.renewal.began = r.at
		c.beginTake(now, r.messages)
		c.advance(now)
		return
	}
	c.looks.gone = 0 // they are, when messages are held again
	c.counts.Releases++
	r.last = Release{At: r.at, Took: now.Sub(r.at), Messages: r.messages, Code: r.why.code, Reason: r.why.text}
	c.enter(now, r.next, r.why)
	if c.state == Observing {
		c.refusal.retryAt = 0
	}
}

// stop begins the last release; the core has ended when its state is Stopped.
func (c *core) stop(now deadline.Instant, why reason) {
	c.beginRelease(now, Stopped, why)
	c.advance(now)
}

// refuse gives everything back and takes nothing until the refusal ends.
func (c *core) refuse(now deadline.Instant, r refusal) {
	if c.refusal.sticky && c.state != Keeping {
		return
	}
	c.refusal = r
	if c.release.next == Stopped && c.state == Releasing {
		return
	}
	c.beginRelease(now, Refused, r.reason)
	if c.state == Refused {
		c.enter(now, Refused, r.reason)
	}
}

// allow ends a refusal; the queue is refused again if a reason still applies.
func (c *core) allow(now deadline.Instant) {
	if c.state != Refused {
		return
	}
	c.refusal = refusal{}
	c.enter(now, Observing, reason{Looking, "allowed by an operator"})
	c.setFacts(now, c.facts)
	c.looks.at = now
}
