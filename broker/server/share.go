package server

import "slices"

// The limit of basic.qos with global is one for all consumers of a channel (RabbitMQ: Consumer
// Prefetch, and its limiter). What a consumer without acks takes does not count, but it takes
// nothing either while the limit is reached.
//
// Consumers that it turned down stand in line, and nobody passes them: not the one that acked
// just now either, whose queue is the first to hear of that. In its turn each takes one message
// and goes to the end. RabbitMQ tells the waiting queues in random order, so each has its share
// as well.
//
// There is a line only while the limit is reached, or the reader is about to call serveStarved.

// share says whether the channel's limit lets c take one more message; if not, c stands in line
// from now on. Called with ch.mu held.
func (c *consumer) share() bool {
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

// serveStarved offers what room there is to the consumers in line. Called by the reader, with
// no lock held, when there may be room again.
func (ch *channel) serveStarved() {
	for c := ch.nextStarved(); c != nil; c = ch.nextStarved() {
		c.Wake()
	}
}

// nextStarved takes out of the line whose turn it is; nil if there is nobody, or no room. One
// that then takes nothing, since its queue has nothing, loses its turn.
func (ch *channel) nextStarved() *consumer {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.turn = nil
	if len(ch.starved) == 0 || ch.limit > 0 && ch.inFlight >= ch.limit {
		return nil
	}
	ch.turn = ch.starved[0]
	ch.unstarve(ch.turn)
	return ch.turn
}

// unstarve takes c out of the line. Called with mu held.
func (ch *channel) unstarve(c *consumer) {
	if i := slices.Index(ch.starved, c); i >= 0 {
		c.starved = false
		ch.starved = slices.Delete(ch.starved, i, i+1)
	}
}
