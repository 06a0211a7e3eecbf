package server

import "slices"

// With basic.qos global, all consumers of a channel share one prefetch limit (RabbitMQ:
// Consumer Prefetch, and its limiter). A consumer without acks does not count against the
// limit, but it gets nothing either while the limit is reached.
//
// Consumers that were refused because of the limit wait in line, and nobody passes them:
// not even the consumer that has just acked, although its queue learns of that first. A
// consumer whose turn it is takes one message and goes to the end of the line. RabbitMQ
// notifies the waiting queues in random order, so there each gets its share as well.
//
// The line exists only while the limit is reached, or while the reader is about to call
// serveStarved.

// shareLocked reports whether the channel's limit allows c to take one more message. If
// not, c joins the line. It needs ch.mu.
func (c *consumer) shareLocked() bool {
	ch := c.ch
	if ch.inFlight < ch.limit && (ch.turn == c || len(ch.starved) == 0) {
		ch.turn = nil
		return true
	}
	if !c.starved && ch.consumers[c.Tag] == c {
		c.starved = true
		ch.starved = append(ch.starved, c)
	}
	return false
}

// serveStarved offers the free credit to the consumers in line. The reader calls it, with
// no lock held, when there may be credit again.
func (ch *channel) serveStarved() {
	for c := ch.nextStarved(); c != nil; c = ch.nextStarved() {
		c.Wake()
	}
}

// nextStarved takes the consumer whose turn it is out of the line; nil if there is no
// consumer or no credit. A consumer whose queue is empty loses its turn.
func (ch *channel) nextStarved() *consumer {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.turn = nil
	if len(ch.starved) == 0 || ch.limit > 0 && ch.inFlight >= ch.limit {
		return nil
	}
	ch.turn = ch.starved[0]
	ch.unstarveLocked(ch.turn)
	return ch.turn
}

// unstarveLocked takes c out of the line.
func (ch *channel) unstarveLocked(c *consumer) {
	if i := slices.Index(ch.starved, c); i >= 0 {
		c.starved = false
		ch.starved = slices.Delete(ch.starved, i, i+1)
	}
}
