package keeper

import "curfew/broker/deadline"

// release is the giving back of all that was held.
type release struct {
	next     State // which follows
	why      reason
	at       deadline.Instant // when it began
	messages int              // how many were held then
	last     Release          // the last one that has ended
}

// advanceRelease gives everything back in the order of the queue, one stretch after another.
func (c *core) advanceRelease(now deadline.Instant) {
	switch {
	case c.line.consumer != nil:
		c.line.cancelConsumer()
	case len(c.line.stretches) > 0:
		c.line.giveBackStretch(c.line.stretches[0])
	default:
		c.released(now)
	}
}

// beginRelease begins to give everything back; next is the state that follows.
func (c *core) beginRelease(now deadline.Instant, next State, why reason) {
	c.release.next, c.release.why = next, why
	if c.state == Releasing {
		return
	}
	if !c.taking() && len(c.line.stretches) == 0 {
		c.enter(now, next, why)
		return
	}
	c.beginGap(now)
	c.rolls.present = nil
	c.release.at, c.release.messages = now, c.line.held.count
	c.enter(now, Releasing, why)
}

func (c *core) released(now deadline.Instant) {
	c.counts.Releases++
	r := &c.release
	r.last = Release{At: r.at, Took: now.Sub(r.at), Messages: r.messages, Code: r.why.code, Reason: r.why.text}
	c.given.rolled = nil // nobody tells the keeper who takes them now
	c.enter(now, r.next, r.why)
	c.looks.at = now
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
	c.refusal = r
	if c.release.next == Stopped && c.state == Releasing {
		return
	}
	c.beginRelease(now, Refused, r.reason)
	if c.state == Refused {
		c.enter(now, Refused, r.reason)
	}
}
