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

// stampHeader is the annotation in which RabbitMQ keeps with a message when it is due, how often it had come out of this queue before, and when it was first
// put aside; the times are Unix microseconds. With another number it is of an earlier wait.
const stampHeader = "x-curfew-due"

// beforeHeader makes an x-cancel a tombstone of Curfew's own, which ends only what was put aside before then, in Unix microseconds: it may be in the queue
// twice, the later one when the message has long gone and its id is used again.
const beforeHeader = "x-curfew-before"

// deliveryTime is the annotation with which RabbitMQ 4.3 delivers a message again at that time, Unix ms.
const deliveryTime = "x-opt-delivery-time"

func stampOf(due deadline.Instant, deaths int64, stamped deadline.Instant) string {
	return fmt.Sprintf("%d %d %d", due, deaths, stamped)
}

// readStamp returns when the message is due, and when it was first put aside; 0: it has no stamp, or one of an earlier wait.
func readStamp(v any, deaths int64) (due, stamped deadline.Instant) {
	text, _ := v.(string)
	var times int64
	stamped = 1 // earlier Curfews did not say
	if n, _ := fmt.Sscan(text, &due, &times, &stamped); n < 2 || times != deaths {
		return 0, 0
	}
	return due, stamped
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
	e.stamped = cmp.Or(e.stamped, now)
	out := effect{channel: e.channel, tag: e.tag, aside: e.due, stamp: stampOf(e.due, e.deaths, e.stamped)}
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
		e.stamped = was.stamped
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
	tombstone := c.bearing(m.target, c.last, false)
	switch {
	case m.command == replacing:
		tombstone.user = cmp.Or(tombstone.user, m.user)
		c.publish(tombstone)
		tombstone.whenConfirmed(func() { c.answer(m.replyTo, m.correl, Replaced) })
		if e.channel != nil {
			c.hold(now, e)
		}
		return
	case tombstone.channel == nil, m.returned: // RabbitMQ gives it up after seven weeks, and delivers it again
		c.carry(tombstone, e)
	default: // there is one already
		c.settle(e, true)
	}
	if found == PutAside {
		found = Cancelled
	}
	c.answer(m.replyTo, m.correl, found)
}

// carry has a command that was delivered be the tombstone.
func (c *core) carry(tombstone, e *held) {
	if tombstone.channel != nil {
		c.settle(tombstone, true)
	}
	tombstone.channel, tombstone.tag, tombstone.user = e.channel, e.tag, e.message.user
	tombstone.confirm()
}

// bearing returns the tombstone for what has an id and was put aside until then, and drops what is known of it; unless older, also what has just come.
func (c *core) bearing(id string, until deadline.Instant, older bool) *held {
	tombstone := c.tombstones[id]
	if tombstone == nil {
		tombstone = &held{id: id, at: -1}
		c.tombstones[id] = tombstone
	}
	tombstone.since = max(tombstone.since, until)
	var next *held
	for e := c.byID[id]; e != nil; e = next {
		next = e.next
		switch {
		case older && (e.stamped == 0 || e.stamped > until):
			continue
		case e.channel != nil:
			c.endHere(e)
		default:
			c.forget(e)
			tombstone.targets++
		}
		c.acked++
	}
	return tombstone
}

// publish has a tombstone published, until RabbitMQ has confirmed it.
func (c *core) publish(tombstone *held) {
	tombstone.unconfirmed = true
	c.out = append(c.out, effect{tombstone: tombstone})
}

// whenConfirmed calls tell as soon as RabbitMQ has a tombstone: at once if it has, or if there is none.
func (tombstone *held) whenConfirmed(tell func()) {
	if tombstone == nil || !tombstone.unconfirmed {
		tell()
		return
	}
	tombstone.confirmed = append(tombstone.confirmed, tell)
}

// confirm takes in that RabbitMQ has a tombstone, or that none is needed any more.
func (tombstone *held) confirm() {
	tombstone.unconfirmed = false
	for _, tell := range tombstone.confirmed {
		tell()
	}
	tombstone.confirmed = nil
}

// publishAgain has those published that RabbitMQ has not confirmed.
func (c *core) publishAgain() {
	for _, tombstone := range c.tombstones {
		if tombstone.unconfirmed {
			c.publish(tombstone)
		}
	}
}

// readTombstone takes in a tombstone that a Curfew has published. There may be another one like it, and what it is for may have ended.
func (c *core) readTombstone(e *held) {
	m := e.message
	known, acked := c.tombstones[m.target], c.acked
	tombstone := c.bearing(m.target, m.before, true)
	c.carry(tombstone, e)
	if ended := c.acked > acked; known == nil && tombstone.targets == 0 && (ended || c.complete || c.outcome(m.target) == Cancelled) {
		c.endTombstone(tombstone, ended)
	}
}

// tombstoneFor returns the tombstone for a message that has come back; nil: there is none by somebody who may cancel it, or the message is younger. One
// without a stamp was never put aside, unless this Curfew has, and RabbitMQ has not heard it: otherwise it was on its way here when the connection was lost.
func (c *core) tombstoneFor(e *held, m *message) *held {
	t := c.tombstones[m.id]
	if t == nil || !m.returned || e.stamped > t.since || e.stamped == 0 && (e.known != ByMemory || t.targets == 0) || c.cancel == cluster.CancelSameUser && (m.user == "" || t.user != m.user) && t.user != c.self {
		return nil
	}
	return t
}

// endOne acknowledges a message that a tombstone is for.
func (c *core) endOne(e, tombstone *held) {
	c.endHere(e)
	if tombstone.targets--; tombstone.targets > 0 {
		return
	}
	c.endTombstone(tombstone, true)
}

// endTombstone drops a tombstone, which has ended something or has nothing to wait for.
func (c *core) endTombstone(tombstone *held, ended bool) {
	if ended && c.byID[tombstone.id] == nil { // or the id is used again
		c.note(tombstone.id, Cancelled)
	}
	delete(c.tombstones, tombstone.id)
	tombstone.confirm()
	if tombstone.channel != nil {
		c.settle(tombstone, true)
	}
}

// nothingAside takes in that RabbitMQ has nothing aside: all that was known of is back, and tombstones have nothing to wait for.
func (c *core) nothingAside() {
	c.complete = true
	for _, e := range c.tombstones {
		c.endTombstone(e, false)
	}
}

// cancelHere cancels for an operator. A tombstone is published, since it has to outlive this process.
func (c *core) cancelHere(now deadline.Instant, id string) Outcome {
	o := c.end(id, Cancelled)
	if o != PutAside && o != Unclear {
		return o
	}
	if c.tombstones[id] == nil || c.byID[id] != nil {
		c.last = max(c.last, now)
		tombstone := c.bearing(id, c.last, false)
		tombstone.user = c.self
		c.publish(tombstone)
	}
	if o == PutAside {
		return Cancelled
	}
	return o
}
