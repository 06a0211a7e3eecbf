package delivery

import "curfew/broker/queue"

// deliveryMode is how a message was handed out.
type deliveryMode uint8

const (
	toConsumer deliveryMode = iota
	toConsumerNoAck
	toGet
	toGetNoAck

	deliveryModes = int(toGetNoAck) + 1
)

func modeOf(get, noAck bool) deliveryMode {
	m := toConsumer
	if get {
		m = toGet
	}
	if noAck {
		m++
	}
	return m
}

// QueueStats are totals of one queue since it was declared or the broker
// started (RabbitMQ: message_stats).
type QueueStats struct {
	Published      uint64 // entered by publishers; dead letters are not counted
	Delivered      uint64 // to consumers that acknowledge
	DeliveredNoAck uint64
	Got            uint64 // by basic.get, to be acknowledged
	GotNoAck       uint64
	GetEmpty       uint64 // basic.get that found nothing
	Acked          uint64
	Redelivered    uint64 // deliveries and gets of messages that had come back
	Journaled      uint64 // persistent messages entered, dead letters included
}

// Add adds the totals of another queue.
func (c *QueueStats) Add(o *QueueStats) {
	c.Published += o.Published
	c.Delivered += o.Delivered
	c.DeliveredNoAck += o.DeliveredNoAck
	c.Got += o.Got
	c.GotNoAck += o.GotNoAck
	c.GetEmpty += o.GetEmpty
	c.Acked += o.Acked
	c.Redelivered += o.Redelivered
	c.Journaled += o.Journaled
}

// AllDelivered is how many messages were handed out in any way.
func (c *QueueStats) AllDelivered() uint64 {
	return c.Delivered + c.DeliveredNoAck + c.Got + c.GotNoAck
}

// counters are what a queue counts: plain numbers under its lock, which is held anyway.
type counters struct {
	published, getEmpty, acked, redelivered, journaled uint64
	out                                                [deliveryModes]uint64
}

func (t *counters) stats() QueueStats {
	return QueueStats{
		Published: t.published, GetEmpty: t.getEmpty, Acked: t.acked, Redelivered: t.redelivered, Journaled: t.journaled,
		Delivered: t.out[toConsumer], DeliveredNoAck: t.out[toConsumerNoAck], Got: t.out[toGet], GotNoAck: t.out[toGetNoAck],
	}
}

// toConsumers is how many messages consumers have taken.
func (t *counters) toConsumers() uint64 { return t.out[toConsumer] + t.out[toConsumerNoAck] }

// entered counts a message that came in.
func (t *counters) entered(m *queue.Message) {
	if m.Flags&queue.Died == 0 {
		t.published++
	}
	if m.Flags&queue.Durable != 0 {
		t.journaled++
	}
}

// Load returns how many messages are in the queue, including unacked ones, how many consumers it has, and its totals.
func (q *Queue) Load() (messages, consumers int, c QueueStats) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Len(), q.consumers.count, q.counters.stats()
}
