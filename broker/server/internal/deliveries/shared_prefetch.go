package deliveries

import "slices"

// sharedPrefetch is the limit that all consumers of a channel share (basic.qos global;
// RabbitMQ: Consumer Prefetch, and its limiter). A consumer without acks does not count
// against the limit, but it gets nothing either while the limit is reached. Guarded by
// Deliveries.mu.
//
// Consumers that were refused because of the limit wait in line, and nobody passes them:
// not even the consumer that has just acked, although its queue learns of that first. A
// consumer whose turn it is takes one message and goes to the end of the line. RabbitMQ
// notifies the waiting queues in random order, so there each gets its share as well.
//
// The line exists only while the limit is reached, or while the reader is about to call
// ServeLine.
type sharedPrefetch struct {
	limit    int         // unacked deliveries over all consumers; 0: no limit
	inFlight int         // unacked deliveries of consumers; messages from basic.get do not count
	line     []*Consumer // refused because of the limit, in the order of their turns
	turn     *Consumer   // the consumer that may take a message before them; nil: none
}

// allows reports whether the limit allows c to take one more message. If not, c joins the
// line.
func (p *sharedPrefetch) allows(c *Consumer) bool {
	if p.inFlight < p.limit && (p.turn == c || len(p.line) == 0) {
		p.turn = nil
		return true
	}
	if !c.inLine && !c.removed {
		c.inLine = true
		p.line = append(p.line, c)
	}
	return false
}

// next takes the consumer whose turn it is out of the line; nil if there is no consumer or no
// credit. A consumer whose queue is empty loses its turn.
func (p *sharedPrefetch) next() *Consumer {
	p.turn = nil
	if len(p.line) == 0 || p.limit > 0 && p.inFlight >= p.limit {
		return nil
	}
	p.turn = p.line[0]
	p.leave(p.turn)
	return p.turn
}

// leave takes c out of the line.
func (p *sharedPrefetch) leave(c *Consumer) {
	if i := slices.Index(p.line, c); i >= 0 {
		c.inLine = false
		p.line = slices.Delete(p.line, i, i+1)
	}
}

// ServeLine offers the free credit of the shared limit to the consumers in line. The reader
// calls it, with no lock held, when there may be credit again.
func (d *Deliveries) ServeLine() {
	for c := d.nextInLine(); c != nil; c = d.nextInLine() {
		c.Wake()
	}
}

func (d *Deliveries) nextInLine() *Consumer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shared.next()
}
