package delay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// stampHeader is the annotation in which RabbitMQ keeps with a message when it is due, how often it had come out of this queue before, and when it was first
// put aside; the times are Unix microseconds. With another number it is of an earlier wait.
const stampHeader = "x-curfew-due"

// beforeHeader makes an x-cancel a tombstone of Curfew's own, which ends only what was put aside before then, in Unix microseconds: it may be in the queue
// twice, the later one when the message has long gone and its id is used again.
const beforeHeader = "x-curfew-before"

// userHeader is whose messages such a tombstone ends; without it, anybody's.
const userHeader = "x-curfew-user"

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
	from := e.due.Add(-c.ahead)
	e.aside = max(from, c.free[from]) // many may be due at one time
	for c.aside[e.aside] != nil {
		e.aside++
	}
	c.free[from], e.due = e.aside+1, e.aside.Add(c.ahead)
	delete(c.restamped, e.aside)
	c.asideAt = time.Now()
	e.stamped = cmp.Or(e.stamped, now)
	out := effect{channel: e.channel, tag: e.tag, aside: e.aside, stamp: stampOf(e.aside, e.deaths, e.stamped)}
	if until := e.due.Add(-HeldFor); until > now {
		out.until = until.Add(-c.ahead)
	}
	e.channel.held--
	c.out = append(c.out, out)
	c.recent = append(c.recent, recentDue{e.fingerprint, e.due, now}) // RabbitMQ may not hear that
	e.id, e.key = strings.Clone(e.id), strings.Clone(e.key)
	e.channel, e.known, e.guessed, c.aside[e.aside] = nil, ByStamp, e.guessed || e.known == Unknown, e
}

// isBack takes a message that has come again out of those that are aside, and its due time out of those remembered.
func (c *core) isBack(e *held, m *message) {
	if was := c.aside[cmp.Or(m.stamp, e.due.Add(-c.ahead))]; was != nil && was.fingerprint == e.fingerprint {
		e.stamped, e.guessed = was.stamped, was.guessed
		c.forget(was)
	}
	if e.known == ByStamp {
		c.remembered.Remove(e.fingerprint, e.due)
	}
}

// forget drops a message that is aside.
func (c *core) forget(e *held) {
	delete(c.aside, e.aside)
	c.waiting.Remove(e.at)
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

// tombstoneKey is what a tombstone is for: the messages with an id of one user, or of anybody if that is core.self.
type tombstoneKey struct{ id, user string }

// plant ends the messages with an id, of which at least one is aside or may be. A command to cancel stays unacknowledged, as a tombstone, until they have
// come back. For a replacement, which goes its own way, a tombstone is published.
func (c *core) plant(now deadline.Instant, e *held, found Outcome) {
	m := e.message
	tombstone := c.bearing(tombstoneKey{m.target, m.user}, c.last, false)
	if m.command == replacing {
		c.publish(tombstone)
		tombstone.whenConfirmed(func(has bool) {
			if found = Unconfirmed; has {
				found = Replaced
			}
			c.answer(m.replyTo, m.correl, found)
		})
		if e.channel != nil {
			c.hold(now, e)
		}
		return
	}
	c.carry(tombstone, e)
	tombstone.confirm()
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
	tombstone.channel, tombstone.tag = e.channel, e.tag
}

// bearing returns the tombstone for what was put aside until then, and drops what is known of it; unless older, also what has just come. There is one for
// each user, unless everybody may cancel everything.
func (c *core) bearing(of tombstoneKey, until deadline.Instant, older bool) *held {
	if c.cancel != cluster.CancelSameUser {
		of.user = c.self
	}
	tombstone := c.tombstones[of]
	if tombstone == nil {
		tombstone = &held{id: of.id, user: of.user, at: -1}
		c.tombstones[of] = tombstone
	}
	tombstone.since = max(tombstone.since, until)
	var next *held
	for e := c.byID[of.id]; e != nil; e = next {
		next = e.next
		switch {
		case of.user != c.self && of.user != e.user, older && (e.stamped == 0 || e.stamped > until):
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

// whenConfirmed calls tell as soon as RabbitMQ has a tombstone, or has refused it: at once if it has, or if there is none.
func (tombstone *held) whenConfirmed(tell func(has bool)) {
	if tombstone == nil || !tombstone.unconfirmed {
		tell(true)
		return
	}
	tombstone.confirmed = append(tombstone.confirmed, tell)
}

// confirm takes in that RabbitMQ has a tombstone, or that none is needed any more.
func (tombstone *held) confirm() {
	tombstone.unconfirmed = false
	tombstone.tell(true)
}

// tell tells those who wait whether RabbitMQ has a tombstone.
func (tombstone *held) tell(has bool) {
	for _, tell := range tombstone.confirmed {
		tell(has)
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

// readTombstone takes in a tombstone that an instance has published. There may be another one like it, and what it is for may have ended.
func (c *core) readTombstone(e *held) {
	m := e.message
	before, acked := len(c.tombstones), c.acked
	tombstone := c.bearing(tombstoneKey{m.target, cmp.Or(m.of, c.self)}, m.before, true)
	if tombstone.channel == nil || tombstone.since == m.before {
		c.carry(tombstone, e)
	} else { // that one ends more
		c.settle(e, true)
	}
	if tombstone.since == m.before { // or it was given again meanwhile, and RabbitMQ may not have that
		tombstone.confirm()
	}
	if ended := c.acked > acked; len(c.tombstones) > before && tombstone.targets == 0 && (ended || c.complete || c.outcome(m.target) == Cancelled) {
		c.endTombstone(tombstone, ended)
	}
}

// tombstonesFor returns the tombstones for a message that has come back, by those who may cancel it, unless it is younger. One without a stamp was never
// put aside, unless this Curfew has, and RabbitMQ has not heard it: otherwise it was on its way here when the connection was lost.
func (c *core) tombstonesFor(e *held, m *message) (all []*held) {
	if !m.returned {
		return nil
	}
	for _, user := range slices.Compact([]string{c.self, m.user}) {
		t := c.tombstones[tombstoneKey{m.id, user}]
		if t != nil && (e.stamped > 0 && e.stamped <= t.since || e.stamped == 0 && e.known == ByMemory && t.targets > 0) {
			all = append(all, t)
		}
	}
	return all
}

// endOne acknowledges a message that tombstones are for.
func (c *core) endOne(e *held, tombstones []*held) {
	c.endHere(e)
	for _, t := range tombstones {
		if t.targets--; t.targets <= 0 {
			c.endTombstone(t, true)
		}
	}
}

// endTombstone drops a tombstone, which has ended something or has nothing to wait for.
func (c *core) endTombstone(tombstone *held, ended bool) {
	if ended && c.byID[tombstone.id] == nil { // or the id is used again
		c.note(tombstone.id, Cancelled)
	}
	delete(c.tombstones, tombstoneKey{tombstone.id, tombstone.user})
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
	own := tombstoneKey{id, c.self}
	o := c.end(own, Cancelled)
	if o != PutAside && o != Unclear {
		return o
	}
	if t := c.tombstones[own]; t == nil || t.unconfirmed || c.byID[id] != nil {
		c.last = max(c.last, now)
		c.publish(c.bearing(own, c.last, false))
	}
	if o == PutAside {
		return Cancelled
	}
	return o
}
