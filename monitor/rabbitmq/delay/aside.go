package delay

import (
	"cmp"
	"container/heap"
	"fmt"
	"strings"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// stampHeader is the annotation in which RabbitMQ keeps with a message when it is due, in Unix microseconds, and how often it had come out of this queue
// before. With another number it is of an earlier wait.
const stampHeader = "x-curfew-due"

// deliveryTime is the annotation with which RabbitMQ 4.3 delivers a message again at that time, Unix ms.
const deliveryTime = "x-opt-delivery-time"

func stampOf(due deadline.Instant, deaths int64) string { return fmt.Sprintf("%d %d", due, deaths) }

// readStamp returns when the message is due; 0: it has no stamp, or one of an earlier wait.
func readStamp(v any, deaths int64) (due deadline.Instant) {
	text, _ := v.(string)
	var times int64
	if n, err := fmt.Sscan(text, &due, &times); n != 2 || err != nil || times != deaths {
		return 0
	}
	return due
}

// putAside has RabbitMQ keep a message until shortly before it is due. It stays in waiting, so that it is listed.
func (c *core) putAside(now deadline.Instant, e *held) {
	from := e.due
	e.due = max(e.due, c.free[from]) // many may be due at one time
	for c.aside[e.due] != nil {
		e.due++
	}
	c.free[from] = e.due + 1
	c.asideAt = time.Now()
	out := effect{channel: e.channel, tag: e.tag, aside: e.due, stamp: stampOf(e.due, e.deaths)}
	if until := e.due.Add(-heldFor); until > now {
		out.until = until
	}
	e.channel.held--
	c.out = append(c.out, out)
	c.recent = append(c.recent, recentDue{e.fingerprint, e.due, now}) // RabbitMQ may not hear that
	e.id, e.key = strings.Clone(e.id), strings.Clone(e.key)
	e.channel, e.known, c.aside[e.due] = nil, ByStamp, e
}

// isBack takes a message that has come again out of those that are aside, and its due time out of those remembered.
func (c *core) isBack(e *held) {
	if was := c.aside[e.due]; was != nil && was.fingerprint == e.fingerprint {
		c.forget(was)
	}
	if e.known == ByStamp && c.remembered[e.fingerprint] != nil {
		c.remember([]keeper.Shadow{{Fingerprint: e.fingerprint, Deadline: e.due, AgeUnknown: true}})
	}
}

// forget drops a message that is aside.
func (c *core) forget(e *held) {
	delete(c.aside, e.due)
	heap.Remove(&c.waiting, e.at)
	c.unlist(e)
}

// isAside reports whether a message, or another one with its id, is aside.
func (c *core) isAside(e *held) bool {
	for ; e != nil; e = e.next {
		if e.channel == nil {
			return true
		}
	}
	return false
}

// plant ends the messages with an id, of which at least one is aside or may be. A command to cancel stays unacknowledged, as a tombstone, until they have
// come back. For a replacement, which goes its own way, a tombstone is published.
func (c *core) plant(now deadline.Instant, e *held, found Outcome) {
	m := e.message
	tombstone := c.bearing(m.target)
	switch {
	case m.command == replacing:
		tombstone.user = cmp.Or(tombstone.user, m.user)
		c.out = append(c.out, effect{tombstone: m.target})
		c.answer(m.replyTo, m.correl, Replaced)
		if e.channel != nil {
			c.hold(now, e)
		}
		return
	case tombstone.channel == nil, m.returned: // RabbitMQ gives it up after seven weeks, and delivers it again
		tombstone.channel, tombstone.tag, tombstone.user = e.channel, e.tag, m.user
	default: // there is one already
		c.settle(e, true)
	}
	if found == PutAside {
		found = Cancelled
	}
	c.answer(m.replyTo, m.correl, found)
}

// bearing returns the tombstone for an id, and drops what is known of the messages with it.
func (c *core) bearing(id string) *held {
	tombstone := c.tombstones[id]
	if tombstone == nil {
		tombstone = &held{id: id, at: -1}
		c.tombstones[id] = tombstone
	}
	for e := c.byID[id]; e != nil; e = c.byID[id] {
		if c.acked++; e.channel != nil {
			c.settle(e, true)
			continue
		}
		c.forget(e)
		tombstone.targets++
	}
	return tombstone
}

// tombstoneFor returns the tombstone for a message that has come back; nil: there is none by somebody who may cancel it.
func (c *core) tombstoneFor(m *message) *held {
	t := c.tombstones[m.id]
	if t == nil || !m.returned || c.cancel == cluster.CancelSameUser && (m.user == "" || t.user != m.user) && t.user != c.self {
		return nil
	}
	return t
}

// endOne acknowledges a message that a tombstone is for.
func (c *core) endOne(e, tombstone *held) {
	c.settle(e, true)
	if tombstone.targets--; tombstone.targets > 0 {
		return
	}
	c.note(e.id, Cancelled)
	c.endTombstone(tombstone)
}

func (c *core) endTombstone(tombstone *held) {
	delete(c.tombstones, tombstone.id)
	if tombstone.channel != nil {
		c.settle(tombstone, true)
	}
}

// nothingAside takes in that RabbitMQ has nothing aside: all that was known of is back, and tombstones have nothing to wait for.
func (c *core) nothingAside() {
	c.complete = true
	for _, e := range c.tombstones {
		c.endTombstone(e)
	}
}

// cancelHere cancels for an operator. A tombstone is published, since it has to outlive this process.
func (c *core) cancelHere(id string) Outcome {
	o := c.end(id, Cancelled)
	if o != PutAside && o != Unclear {
		return o
	}
	if c.tombstones[id] == nil {
		c.bearing(id).user = c.self
		c.out = append(c.out, effect{tombstone: id})
	}
	if o == PutAside {
		return Cancelled
	}
	return o
}
