package delay

import (
	"maps"
	"slices"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/keeper"
)

type recentDue struct {
	fingerprint uint64
	due, at     deadline.Instant
}

// remember takes in due times that another Curfew knew. A shadow with AgeUnknown takes one back.
func (c *core) remember(shadows []keeper.Shadow) {
	for _, s := range shadows {
		if !s.AgeUnknown {
			c.remembered.Note(s.Fingerprint, s.Deadline)
		}
	}
	for _, s := range shadows {
		if s.AgeUnknown {
			c.remembered.Remove(s.Fingerprint, s.Deadline)
		}
	}
}

// inherit takes in due times that another Curfew knew that may have had the queue until now, and may have put more aside, or ended what is aside.
func (c *core) inherit(shadows []keeper.Shadow) {
	for _, e := range c.aside {
		c.forget(e)
	}
	c.complete = false
	c.remember(shadows)
}

// prune forgets due times of messages that did not come again.
func (c *core) prune(now deadline.Instant) {
	maps.DeleteFunc(c.restamped, func(_, to deadline.Instant) bool { return to < now.Add(-c.ahead-recentFor) })
	maps.DeleteFunc(c.free, func(due, _ deadline.Instant) bool { return due < now.Add(-c.ahead) })
	c.remembered.DropBefore(now.Add(-forgetAfter))
	c.unheard = slices.DeleteFunc(c.unheard, func(r recentDue) bool {
		gone := c.caughtUp && r.at < now.Add(-recentFor)
		if gone {
			c.remembered.Remove(r.fingerprint, r.due)
		}
		return gone
	})
}

// allShadows returns all due times that are known.
func (c *core) allShadows() (all []keeper.Shadow) {
	for _, e := range c.waiting.Items {
		if e.channel == nil || e.again {
			continue
		}
		all = append(all, keeper.Shadow{Fingerprint: e.fingerprint, Deadline: e.due})
	}
	return all
}
