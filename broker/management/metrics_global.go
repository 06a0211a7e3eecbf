package management

import (
	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker"
	"curfew/broker/queue"
)

var protocol = label{"protocol", "amqp091"}

// byQueueType are the labels of totals. They are not kept by queue type: all have RabbitMQ's name
// of the classic type.
var byQueueType = []label{protocol, {"queue_type", "rabbit_classic_queue"}}

// global shows the totals since the start.
func (c *collector) global(s *sink) {
	t, srv := c.Broker.Stats(), &c.Server.Totals
	publishers, consumers := 0, 0
	for _, conn := range c.Server.List() {
		for _, ch := range conn.Channels {
			consumers += len(ch.Consumers)
			if ch.Stats.Published > 0 {
				publishers++
			}
		}
	}
	s.gauge("global_publishers", "Publishers currently connected", float64(publishers), protocol)
	s.gauge("global_consumers", "Consumers currently connected", float64(consumers), protocol)
	routed := t.Published - min(t.Unroutable, t.Published)
	s.counters("global_", []label{protocol},
		counted{"messages_received_total", "Total number of messages received from publishers", t.Published},
		counted{"messages_received_confirm_total", "Total number of messages received from publishers expecting confirmations", srv.ReceivedConfirm.Load()},
		counted{"messages_confirmed_total", "Total number of messages confirmed to publishers", srv.Confirmed.Load()},
		counted{"messages_routed_total", "Total number of messages routed to queues or streams", routed},
		counted{"messages_unroutable_dropped_total", "Total number of messages published as non-mandatory into an exchange and dropped as unroutable", t.Unroutable - min(srv.Returned.Load(), t.Unroutable)},
		counted{"messages_unroutable_returned_total", "Total number of messages published as mandatory into an exchange and returned to the publisher as unroutable", srv.Returned.Load()})
	if c.endpoint == aggregated { // a sum over existing queues would fall when one is deleted
		s.counter("queue_messages_published_total", "Total number of messages published to queues", t.Queues.Published)
		s.counter("queue_disk_writes_total", "Total number of times queue wrote messages to disk", t.Queues.Journaled)
	}
	c.delivered(s, &t.Queues)
	c.deadLettered(s, &t)
	c.sizes(s, &t)
}

func (c *collector) delivered(s *sink, q *broker.QueueStats) {
	s.counters("global_", byQueueType,
		counted{"messages_delivered_total", "Total number of messages delivered to consumers", q.AllDelivered()},
		counted{"messages_delivered_consume_auto_ack_total", "Total number of messages delivered to consumers using basic.consume with automatic acknowledgment", q.DeliveredNoAck},
		counted{"messages_delivered_consume_manual_ack_total", "Total number of messages delivered to consumers using basic.consume with manual acknowledgment", q.Delivered},
		counted{"messages_delivered_get_auto_ack_total", "Total number of messages delivered to consumers using basic.get with automatic acknowledgment", q.GotNoAck},
		counted{"messages_delivered_get_manual_ack_total", "Total number of messages delivered to consumers using basic.get with manual acknowledgment", q.Got},
		counted{"messages_get_empty_total", "Total number of times basic.get operations fetched no message", q.GetEmpty},
		counted{"messages_redelivered_total", "Total number of messages redelivered to consumers", q.Redelivered},
		counted{"messages_acknowledged_total", "Total number of message acknowledgements received from consumers", q.Acked})
}

// deadLettered shows the counts under the stronger of RabbitMQ's two strategies: a dead letter
// moves in one step, and is parked if it cannot be routed.
func (c *collector) deadLettered(s *sink, t *broker.Stats) {
	kept := []label{byQueueType[1], {"dead_letter_strategy", "at_least_once"}}
	var all uint64
	for _, m := range []struct {
		name, help string
		reason     queue.Reason
	}{
		{"expired", "Total number of messages dead-lettered due to message TTL exceeded", queue.Expired},
		{"rejected", "Total number of messages dead-lettered due to basic.reject or basic.nack", queue.Rejected},
		{"maxlen", "Total number of messages dead-lettered due to overflow drop-head or reject-publish-dlx", queue.MaxLength},
		{"delivery_limit", "Total number of messages dead-lettered due to delivery-limit exceeded", queue.DeliveryLimit},
	} {
		s.counter("global_messages_dead_lettered_"+m.name+"_total", m.help, t.DeadLettered[m.reason], kept...)
		all += t.DeadLettered[m.reason]
		if m.reason == queue.Expired {
			s.counter("global_messages_dead_lettered_expired_total", m.help, t.ExpiredDropped, byQueueType[1], label{"dead_letter_strategy", "disabled"})
		}
	}
	s.counter("global_messages_dead_lettered_confirmed_total", "Total number of messages dead-lettered and confirmed by target queues", all, kept...)
}

// sizes shows the histogram of published bodies.
func (c *collector) sizes(s *sink, t *broker.Stats) {
	buckets, count := map[float64]uint64{}, uint64(0)
	for i, n := range t.Sizes {
		count += n
		if i < len(broker.MessageSizes) {
			buckets[float64(broker.MessageSizes[i])] = count
		}
	}
	desc := prometheus.NewDesc(s.prefix+"message_size_bytes", "Size of messages received from publishers", []string{protocol.name}, nil)
	s.ch <- prometheus.MustNewConstHistogram(desc, count, float64(t.BodyBytes), buckets, protocol.value)
}
