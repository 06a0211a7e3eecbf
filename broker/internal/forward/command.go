package forward

import (
	"bytes"
	"crypto/subtle"
	"sort"
	"strconv"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Result is what became of a command. The words are those of delays beside RabbitMQ.
type Result string

// The results of commands.
const (
	Scheduled   Result = "scheduled" // it waits; no command, but a message whose publisher wants its id
	Cancelled   Result = "cancelled"
	Replaced    Result = "replaced"
	Rescheduled Result = "rescheduled"
	TooLate     Result = "too late"  // it is due: it is delivered, or was
	NotFound    Result = "not found" // no such message of this user waits, nor is known to have left
)

// Answer is the answer to a command.
type Answer struct {
	To, CorrelationID string
	Result            Result
	ID                string // of the message that has been scheduled, if its publisher wants it
}

// command is a command about to be carried out.
type command struct {
	message.Command
	target name
	secret []byte // of the id of the message itself
	answer Answer
}

// commandOf reads a command from the message that brings it, which was checked when it was
// published.
func commandOf(m store.Message) (c command) {
	view, _ := amqp.ViewProperties(m.Properties)
	c.Command, _ = message.CommandOf(message.HeadersOf(view.Headers))
	user, secret := message.ScheduledIn(&view)
	c.target, c.secret = name{m.Exchange, user, []byte(c.ID)}, secret
	c.answer.To, c.answer.CorrelationID = string(view.ReplyTo), string(view.CorrelationID)
	return c
}

// commandLocked carries out a command, in its place among the messages of its batch. The message
// that it is about is the newest with that name that waits. It has one winner, since it leaves once,
// under the lock: the command, or its time. By the clock, not by the timer: what is due is no longer
// changed. The answer is sent once what it says is safe.
func (d *Schedule) commandLocked(s *delivery.Transition, it *delivery.Item, c *command) {
	d.finishLocked(s) // what was published before is journaled before it leaves or changes
	seq, waits := d.findLocked(c.target)
	if !waits {
		seq, waits = d.identifyLocked(c)
	}
	target, _, _ := d.core.Find(seq)
	switch {
	case waits && target.ExpiresAt <= s.Now:
		waits, c.answer.Result = false, TooLate
	case !waits:
		c.answer.Result = d.names.endOf(c.target)
	}
	kept := c.Kind == message.NoCommand || c.Kind == message.Replace && (waits || !c.Only)
	var entered store.Enqueue
	switch {
	case waits && c.Kind == message.Reschedule:
		c.answer.Result = Rescheduled
		d.rescheduleLocked(s, queue.Due{At: target.ExpiresAt, Seq: seq}, max(it.Message.ExpiresAt, s.Now+1))
	case waits && c.Kind == message.Cancel:
		c.answer.Result = Cancelled
		d.core.Remove(seq, target.ExpiresAt, &d.effects)
		d.finishLocked(s)
		d.dropCancelledLocked()
	case waits:
		c.answer.Result = Replaced
		entered = d.replaceLocked(s, queue.Due{At: target.ExpiresAt, Seq: seq}, it)
		d.names.note(d.names.hash(c.target), Replaced)
	case kept:
		if entered = d.enterLocked(it); c.Kind == message.NoCommand {
			c.answer.Result = Scheduled
		}
		s.AddEnteredLocked(it, entered)
	}
	if !kept {
		d.env.Store.Release(store.Pos(it.Message.Pos))
	} else {
		s.Numbered = append(s.Numbered, delivery.Numbered{Publish: it.Number, Seq: queue.Seq(entered.Seq), Delayed: true})
		if c.secret != nil {
			c.answer.ID = idOf(queue.Seq(entered.Seq), c.secret)
		}
	}
	if c.answer.To != "" && d.answer != nil {
		answer := c.answer
		s.Safely = append(s.Safely, func() { d.answer(answer) })
	}
}

// findLocked finds the newest message with a name that waits.
func (d *Schedule) findLocked(n name) (seq queue.Seq, waits bool) {
	for seq, waits = d.names.newest[d.names.hash(n)]; waits; seq, waits = d.names.older[seq] {
		if m, _, ok := d.core.Find(seq); ok {
			if its, _, _ := d.nameLocked(m.Pos); bytes.Equal(its.exchange, n.exchange) && bytes.Equal(its.user, n.user) && bytes.Equal(its.id, n.id) {
				return seq, true
			}
		}
	}
	return 0, false
}

// identifyLocked finds a message that waits and that a command names by its id, whoever sends it. If
// nothing is known under the name, the command's target is then that id.
func (d *Schedule) identifyLocked(c *command) (seq queue.Seq, waits bool) {
	number, secret, ok := strings.Cut(c.ID, ".")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil || d.names.endOf(c.target) != NotFound {
		return 0, false
	}
	c.target.user = nil
	m, _, ok := d.core.Find(queue.Seq(n))
	if !ok {
		return 0, false
	}
	its, have, _ := d.nameLocked(m.Pos)
	return queue.Seq(n), len(have) > 0 && subtle.ConstantTimeCompare(have, []byte(secret)) == 1 && bytes.Equal(its.exchange, c.target.exchange)
}

// replaceLocked lets an item enter instead of a message that waits. After a crash one of both
// is found.
func (d *Schedule) replaceLocked(s *delivery.Transition, target queue.Due, it *delivery.Item) (entered store.Enqueue) {
	d.core.Remove(target.Seq, target.At, &d.effects)
	left := d.effects.Settled[0]
	d.effects.Reset()
	d.forgetLocked(&left)
	entered = d.enterLocked(it)
	d.dropCancelledLocked()
	if settled := delivery.SettleRecord(d.id, &left); s.Whole {
		s.Settled = append(s.Settled, settled)
		s.AddEnteredLocked(it, entered)
	} else {
		d.env.Store.Moved(settled, []store.Enqueue{entered})
	}
	return entered
}

// rescheduleLocked gives a message that waits another time, in the future.
func (d *Schedule) rescheduleLocked(s *delivery.Transition, target queue.Due, at deadline.Instant) {
	if at == target.At {
		return
	}
	d.core.Reschedule(s.Now, target.Seq, target.At, at, &d.effects)
	d.pushLocked(queue.Due{At: at, Seq: target.Seq})
	d.dropCancelledLocked()
	own := sort.Search(len(s.Entered), func(i int) bool { // they ascend at the end of it
		return s.Entered[i].Queue == d.id && s.Entered[i].Seq >= uint64(target.Seq)
	})
	if own < len(s.Entered) && s.Entered[own].Seq == uint64(target.Seq) { // of the same transaction: not journaled yet
		s.Entered[own].ExpiresAt = at
		return
	}
	if m, deliveries, _ := d.core.Find(target.Seq); m.Flags&queue.Durable != 0 {
		d.env.Store.Amended([]store.Amend{{
			Queue: d.id, Seq: uint64(target.Seq), Pos: store.Pos(m.Pos), Durable: true,
			Terms: store.Terms{ExpiresAt: at, Deliveries: deliveries, Flags: uint8(m.Flags)},
		}})
	}
}
