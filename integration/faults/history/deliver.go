package history

import "fmt"

// delivered judges a delivery.
func (c *checker) delivered(e *Event) error {
	ch, err := c.channel(e.By)
	if err != nil {
		return err
	}
	if ch.queue.name != e.Queue {
		return fmt.Errorf("channel %q consumes from %q", e.By, ch.queue.name)
	}
	c.report.Delivered++
	if e.Redelivered {
		c.report.Redelivered++
	}
	p := c.messages[e.ID]
	if p == nil {
		c.violate(Invented, e, "it was never published")
		return nil
	}
	if e.Sum != p.sum {
		c.violate(Altered, e, "its sum is %s, not %s", e.Sum, p.sum)
	}
	one, at := c.copyAt(e)
	if one == nil {
		c.violate(Misplaced, e, "it was published to other queues")
		return nil
	}
	one.in(c.life)
	if at == inDead {
		c.checkDeadLetter(e, one)
	} else {
		c.checkDelivery(e, ch, one)
	}
	c.checkPlace(e, one, at)
	one.deliveredFrom[at] = true
	one.holder, one.heldIn = ch, at
	ch.held[one] = struct{}{}
	return nil
}

func (c *checker) violate(rule Rule, e *Event, format string, args ...any) {
	c.report.violate(rule, c.line, "message %s from queue %s in life %d: %s", e.ID, e.Queue, c.life, fmt.Sprintf(format, args...))
}

// checkPlace verifies that the copy was in this place only and has not ended.
func (c *checker) checkPlace(e *Event, one *copyOf, at place) {
	switch {
	case one.end != "":
		c.violate(Twice, e, "it has been %s in this life", one.end)
	case at == inQueue && one.leftQueue:
		c.violate(Twice, e, "it has left that queue in this life")
	case one.holder != nil && one.heldIn == at:
		c.violate(Held, e, "%s holds it", one.holder.name)
	case one.holder != nil:
		c.violate(Held, e, "%s holds it, from %s", one.holder.name, one.heldIn)
	case one.deliveredFrom[at] && !e.Redelivered && at == inDead:
		c.violate(Twice, e, "a second dead letter in this life")
	case one.deliveredFrom[at] && !e.Redelivered:
		c.violate(Flag, e, "it has been delivered in this life, and is not marked redelivered")
	}
	switch {
	case one.durablyLeft[at]:
		c.violate(Durable, e, "it had left %s before, which was durable (%s)", at, one.endedAs)
	case one.ended && one.end == "":
		c.report.CameBack++
		one.ended = false
	}
}

// checkDelivery judges a delivery from the queue that the message was published to.
func (c *checker) checkDelivery(e *Event, ch *channel, one *copyOf) {
	if due, ok := one.dueBy(); ok && due+clockSlack < ch.openedAt {
		c.violate(Late, e, "its deadline was %d ms before the consumer came", (ch.openedAt-due)/1000)
	}
	if one.wasHeld && !one.deliveredFrom[inQueue] && !e.Redelivered {
		c.violate(Flag, e, "it has been delivered in an earlier life, and is not marked redelivered")
	}
	one.wasHeld = true
	if !c.mustBeInOrder(e, one) {
		return
	}
	last, known := ch.last[one.publisher]
	if known && one.number < last {
		c.violate(Order, e, "number %d of %s after number %d", one.number, one.publisher, last)
	}
	ch.last[one.publisher] = max(one.number, last)
}

// mustBeInOrder reports whether the copy must be in its publisher's order. That holds for a
// first delivery. For copies of an earlier life, which all come back as redelivered, it
// holds while nothing was requeued.
func (c *checker) mustBeInOrder(e *Event, one *copyOf) bool {
	if !e.Redelivered {
		return true
	}
	return one.publication.life != c.life && !one.queue.disturbed && !one.deliveredFrom[inQueue]
}

// checkDeadLetter judges a delivery from a dead-letter queue.
func (c *checker) checkDeadLetter(e *Event, one *copyOf) {
	one.leftQueue = true
	one.diedOf = e.Reason
	if e.Queue != one.queue.deadLetters {
		c.violate(Misplaced, e, "the dead letters of %s go to %q", one.queue.name, one.queue.deadLetters)
	}
	switch e.Reason {
	case "expired":
		due, ok := one.dueFrom()
		if !ok {
			c.violate(Misplaced, e, "it expired and has no time to live")
		} else if e.At < due {
			c.violate(Early, e, "%d us before its deadline", due-e.At)
		}
	case "rejected":
		if !one.rejected {
			c.violate(Misplaced, e, "nobody rejected it")
		}
	case "maxlen":
		if !one.queue.maxLength {
			c.violate(Misplaced, e, "%s has no maximum length", one.queue.name)
		}
	default:
		c.violate(Misplaced, e, "dead for an unknown reason %q", e.Reason)
	}
}
