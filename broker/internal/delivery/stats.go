package delivery

import "curfew/broker/queue"

// MessageStats are totals of what came out of a queue, or went to a channel (RabbitMQ: message_stats).
type MessageStats struct {
	Delivered      uint64 // to consumers that acknowledge
	DeliveredNoAck uint64
	Got            uint64 // by basic.get, to be acknowledged
	GotNoAck       uint64
	GetEmpty       uint64 // basic.get that found nothing
	Acked          uint64
	Redelivered    uint64 // deliveries and gets of messages that had come back
}

// Count counts a message that is delivered, or handed out by a get.
func (c *MessageStats) Count(get, noAck, redelivered bool) {
	switch {
	case get && noAck:
		c.GotNoAck++
	case get:
		c.Got++
	case noAck:
		c.DeliveredNoAck++
	default:
		c.Delivered++
	}
	if redelivered {
		c.Redelivered++
	}
}

// AllDelivered is how many messages were handed out in any way.
func (c *MessageStats) AllDelivered() uint64 {
	return c.Delivered + c.DeliveredNoAck + c.Got + c.GotNoAck
}

// QueueStats are totals of one queue since it was declared or the broker
// started. The queue's own are under its lock, which is held anyway.
type QueueStats struct {
	Published uint64 // entered by publishers
	Died      uint64 // entered as dead letters
	Journaled uint64 // persistent messages entered, dead letters included
	MessageStats
}

// Entered is how many messages came in.
func (c *QueueStats) Entered() uint64 { return c.Published + c.Died }

// Add adds the totals of another queue.
func (c *QueueStats) Add(o *QueueStats) {
	c.Published += o.Published
	c.Died += o.Died
	c.Delivered += o.Delivered
	c.DeliveredNoAck += o.DeliveredNoAck
	c.Got += o.Got
	c.GotNoAck += o.GotNoAck
	c.GetEmpty += o.GetEmpty
	c.Acked += o.Acked
	c.Redelivered += o.Redelivered
	c.Journaled += o.Journaled
}

// entered counts a message that came in.
func (c *QueueStats) entered(m *queue.Message) {
	if m.Flags&queue.Died != 0 {
		c.Died++
	} else {
		c.Published++
	}
	if m.Flags&queue.Durable != 0 {
		c.Journaled++
	}
}

// Load returns how many messages are in the queue, including unacked ones, how many consumers it has, and its totals.
func (q *Queue) Load() (messages, consumers int, c QueueStats) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Len(), q.consumers.count, q.counters
}
