package delay

import (
	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/keeper"
	"maps"
	"slices"
)

// dueTimes are due times of equal messages.
type dueTimes struct {
	list   []deadline.Instant
	sorted bool
}

// ordered are the due times in order, each once.
func (d *dueTimes) ordered() []deadline.Instant {
	if !d.sorted {
		slices.Sort(d.list)
		d.list, d.sorted = slices.Compact(d.list), true
	}
	return d.list
}

type recentDue struct {
	fingerprint uint64
	due, at     deadline.Instant
}

// remember takes in due times that another Curfew knew. A shadow with AgeUnknown takes one back.
func (c *core) remember(shadows []keeper.Shadow) {
	for _, s := range shadows {
		if s.AgeUnknown {
			continue
		}
		dues := c.remembered[s.Fingerprint]
		if dues == nil {
			dues = &dueTimes{}
			c.remembered[s.Fingerprint] = dues
		}
		dues.list, dues.sorted = append(dues.list, s.Deadline), false
	}
	for _, s := range shadows {
		if dues := c.remembered[s.Fingerprint]; s.AgeUnknown && dues != nil {
			if i, found := slices.BinarySearch(dues.ordered(), s.Deadline); found {
				c.keep(s.Fingerprint, slices.Delete(dues.list, i, i+1))
			}
		}
	}
}

// keep has only these due times remembered of such messages.
func (c *core) keep(fingerprint uint64, dues []deadline.Instant) {
	if len(dues) == 0 {
		delete(c.remembered, fingerprint)
	} else {
		c.remembered[fingerprint].list = dues
	}
}

// recall returns the latest due time remembered of such a message, which is then no longer remembered.
func (c *core) recall(fingerprint uint64) (due deadline.Instant, ok bool) {
	dues := c.remembered[fingerprint]
	if dues == nil {
		return 0, false
	}
	list := dues.ordered()
	last := len(list) - 1
	due = list[last]
	c.keep(fingerprint, list[:last])
	return due, true
}

// prune forgets due times of messages that did not come again.
func (c *core) prune(now deadline.Instant) {
	maps.DeleteFunc(c.free, func(due, _ deadline.Instant) bool { return due < now })
	for fingerprint, dues := range c.remembered {
		from, _ := slices.BinarySearch(dues.ordered(), now.Add(-forgetAfter))
		c.keep(fingerprint, dues.list[from:])
	}
}

// allShadows returns all due times that are known.
func (c *core) allShadows() (all []keeper.Shadow) {
	for _, e := range c.waiting {
		if e.channel == nil || e.again {
			continue
		}
		all = append(all, keeper.Shadow{Fingerprint: e.fingerprint, Deadline: e.due})
	}
	return all
}
