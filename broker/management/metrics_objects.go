package management

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/management/rest"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker"
	"curfew/broker/server"
)

// metric is one metric of a kind of object.
type metric[T any] struct {
	family, name, help string
	kind               prometheus.ValueType
	value              func(*T) float64
	alone              bool // its sum has no meaning
}

const (
	isGauge   = prometheus.GaugeValue
	isCounter = prometheus.CounterValue
)

var queueMetrics = []metric[broker.QueueInfo]{
	{"queue_coarse_metrics", "queue_messages_ready", "Messages ready to be delivered to consumers", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.Ready) }, false},
	{"queue_coarse_metrics", "queue_messages_unacked", "Messages delivered to consumers but not yet acknowledged", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.Unacked) }, false},
	{"queue_coarse_metrics", "queue_messages", "Sum of ready, unacknowledged and delayed messages - total queue depth", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.Ready + i.Unacked + i.Waiting) }, false},
	{"queue_coarse_metrics", "queue_messages_delayed", "Messages that came back and wait for another try", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.Waiting) }, false},
	{"queue_consumer_count", "queue_consumers", "Consumers on a queue", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.Consumers) }, false},
	{"queue_metrics", "queue_messages_persistent", "Persistent messages", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.Persistent) }, false},
	{"queue_metrics", "queue_messages_persistent_bytes", "Size in bytes of persistent messages", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.PersistentBytes) }, false},
	{"queue_metrics", "queue_messages_bytes", "Size in bytes of ready and unacknowledged messages", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.ReadyBytes + i.UnackedBytes) }, false},
	{"queue_metrics", "queue_messages_ready_bytes", "Size in bytes of ready messages", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.ReadyBytes) }, false},
	{"queue_metrics", "queue_messages_unacked_bytes", "Size in bytes of all unacknowledged messages", isGauge, func(i *broker.QueueInfo) float64 { return float64(i.UnackedBytes) }, false},
	{"queue_metrics", "queue_head_message_timestamp", "Timestamp of the first message in the queue, if any", isGauge, headTimestamp, true},
	{"queue_metrics", "queue_oldest_message_age_seconds", "How long the oldest message, ready or unacknowledged, has been in the queue; 0: the queue is empty", isGauge, func(i *broker.QueueInfo) float64 { return i.OldestAge.Seconds() }, true},
	{"queue_metrics", "queue_disk_writes_total", "Total number of times queue wrote messages to disk", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.Journaled) }, true},
	{"queue_delivery_metrics", "queue_messages_published_total", "Total number of messages published to queues", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.Published) }, true},
	{"queue_delivery_metrics", "queue_messages_delivered_total", "Total number of messages delivered from a queue to consumers in automatic acknowledgement mode", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.DeliveredNoAck) }, true},
	{"queue_delivery_metrics", "queue_messages_delivered_ack_total", "Total number of messages delivered from a queue to consumers in manual acknowledgement mode", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.Delivered) }, true},
	{"queue_delivery_metrics", "queue_get_total", "Total number of messages fetched from a queue with basic.get in automatic acknowledgement mode", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.GotNoAck) }, true},
	{"queue_delivery_metrics", "queue_get_ack_total", "Total number of messages fetched from a queue with basic.get in manual acknowledgement mode", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.Got) }, true},
	{"queue_delivery_metrics", "queue_get_empty_total", "Total number of times basic.get operations fetched no message on a queue", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.GetEmpty) }, true},
	{"queue_delivery_metrics", "queue_messages_redelivered_total", "Total number of messages redelivered from a queue to consumers", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.Redelivered) }, true},
	{"queue_delivery_metrics", "queue_messages_acked_total", "Total number of messages acknowledged by consumers on a queue", isCounter, func(i *broker.QueueInfo) float64 { return float64(i.Stats.Acked) }, true},
}

func headTimestamp(i *broker.QueueInfo) float64 {
	if i.HeadTimestamp.IsZero() {
		return math.NaN()
	}
	return float64(i.HeadTimestamp.Unix())
}

// queues shows each queue, or their sum.
func (c *collector) queues(s *sink) {
	all := c.queuesInView()
	if c.endpoint == aggregated {
		total(s, queueMetrics, len(all), func(i int) broker.QueueInfo { return all[i].Info() })
	}
	if c.endpoint != detailed {
		s.gauge("queues", "Queues available", float64(len(all)))
	}
}

func (c *collector) queuesInView() (all []*broker.Queue) {
	for _, vh := range c.Broker.VHosts() {
		if len(c.vhosts) > 0 && !slices.Contains(c.vhosts, vh.Name()) {
			continue
		}
		for _, q := range vh.Queues.List() {
			if c.queue == nil || c.queue.MatchString(q.Name) {
				all = append(all, q)
			}
		}
	}
	return all
}

// total adds a metric for all n objects together.
func total[T any](s *sink, metrics []metric[T], n int, object func(i int) T) {
	sums := make([]float64, len(metrics))
	for i := range n {
		o := object(i)
		for j := range metrics {
			if !metrics[j].alone {
				sums[j] += metrics[j].value(&o)
			}
		}
	}
	for j := range metrics {
		if m := &metrics[j]; !m.alone {
			s.add(m.kind, m.name, m.help, sums[j])
		}
	}
}

// objects writes the metrics of each object, one by one.
func (c *collector) objects(s *rest.Stream) {
	queues := c.queuesInView()
	queueLabels := func(i int) []label {
		return []label{{"queue", queues[i].Name}, {"vhost", queues[i].VHost().Name()}}
	}
	each(s, c, queueMetrics, len(queues), func(i int) broker.QueueInfo { return queues[i].Info() }, queueLabels)
	conns, channels, _ := c.connected()
	each(s, c, connectionMetrics, len(conns), func(i int) server.ConnectionInfo { return conns[i] },
		func(i int) []label { return []label{{"channel", conns[i].Name}} })
	each(s, c, channelMetrics, len(channels), func(i int) server.ChannelInfo { return channels[i] },
		func(i int) []label {
			return []label{{"channel", channels[i].Connection + " (" + strconv.Itoa(int(channels[i].Number)) + ")"}}
		})
}

// each writes the metrics that the view shows, each for all n objects: in the format, the samples
// of a metric stand together.
func each[T any](s *rest.Stream, c *collector, metrics []metric[T], n int, object func(i int) T, labels func(i int) []label) {
	metrics = slices.DeleteFunc(slices.Clone(metrics), func(m metric[T]) bool {
		return !c.shows(m.family) && (m.name != "queue_consumers" || !c.shows("queue_metrics"))
	})
	if len(metrics) == 0 {
		return
	}
	values := make([]float64, 0, n*len(metrics))
	for i := range n {
		o := object(i)
		for j := range metrics {
			values = append(values, metrics[j].value(&o))
		}
	}
	for j := range metrics {
		if n > 0 {
			name, kind := c.prefix()+metrics[j].name, map[prometheus.ValueType]string{isGauge: "gauge", isCounter: "counter"}[metrics[j].kind]
			s.Text("# HELP " + name + " " + metrics[j].help + "\n# TYPE " + name + " " + kind + "\n")
		}
		for i := range n {
			writeSample(s, c.prefix()+metrics[j].name, labels(i), values[i*len(metrics)+j])
		}
	}
}

var labelEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// writeSample writes a sample of a metric in Prometheus' text format.
func writeSample(s *rest.Stream, name string, labels []label, v float64) {
	s.Text(name)
	between := "{"
	for _, l := range labels {
		s.Text(between + l.name + `="` + labelEscapes.Replace(l.value) + `"`)
		between = ","
	}
	s.Text("} " + strconv.FormatFloat(v, 'g', -1, 64) + "\n")
	s.Pass()
}

var channelMetrics = []metric[server.ChannelInfo]{
	{"channel_metrics", "channel_consumers", "Consumers on a channel", isGauge, func(c *server.ChannelInfo) float64 { return float64(len(c.Consumers)) }, false},
	{"channel_metrics", "channel_messages_unacked", "Delivered but not yet acknowledged messages", isGauge, func(c *server.ChannelInfo) float64 { return float64(c.Unacked) }, false},
	{"channel_metrics", "channel_messages_unconfirmed", "Published but not yet confirmed messages", isGauge, func(c *server.ChannelInfo) float64 { return float64(c.Unconfirmed) }, false},
	{"channel_metrics", "consumer_prefetch", "Limit of unacknowledged messages for each consumer", isGauge, func(c *server.ChannelInfo) float64 { return float64(c.Prefetch) }, false},
	{"channel_metrics", "channel_prefetch", "Total limit of unacknowledged messages for all consumers on a channel", isGauge, func(c *server.ChannelInfo) float64 { return float64(c.GlobalPrefetch) }, false},
	{"channel_exchange_metrics", "channel_messages_published_total", "Total number of messages published into an exchange on a channel", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.Published) }, true},
	{"channel_exchange_metrics", "channel_messages_confirmed_total", "Total number of messages published into an exchange and confirmed on the channel", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.Confirmed) }, true},
	{"channel_exchange_metrics", "channel_messages_unroutable_returned_total", "Total number of messages published as mandatory into an exchange and returned to the publisher as unroutable", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.Returned) }, true},
	{"channel_exchange_metrics", "channel_messages_unroutable_dropped_total", "Total number of messages published as non-mandatory into an exchange and dropped as unroutable", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.Dropped) }, true},
	{"channel_queue_metrics", "channel_get_ack_total", "Total number of messages fetched with basic.get in manual acknowledgement mode", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.Got) }, true},
	{"channel_queue_metrics", "channel_get_total", "Total number of messages fetched with basic.get in automatic acknowledgement mode", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.GotNoAck) }, true},
	{"channel_queue_metrics", "channel_get_empty_total", "Total number of times basic.get operations fetched no message", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.GetEmpty) }, true},
	{"channel_queue_metrics", "channel_messages_delivered_ack_total", "Total number of messages delivered to consumers in manual acknowledgement mode", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.Delivered) }, true},
	{"channel_queue_metrics", "channel_messages_delivered_total", "Total number of messages delivered to consumers in automatic acknowledgement mode", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.DeliveredNoAck) }, true},
	{"channel_queue_metrics", "channel_messages_redelivered_total", "Total number of messages redelivered to consumers", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.Redelivered) }, true},
	{"channel_queue_metrics", "channel_messages_acked_total", "Total number of messages acknowledged by consumers", isCounter, func(c *server.ChannelInfo) float64 { return float64(c.Stats.Acked) }, true},
}

var connectionMetrics = []metric[server.ConnectionInfo]{
	{"connection_coarse_metrics", "connection_incoming_bytes_total", "Total number of bytes received on a connection", isCounter, func(c *server.ConnectionInfo) float64 { return float64(c.Received) }, true},
	{"connection_coarse_metrics", "connection_outgoing_bytes_total", "Total number of bytes sent on a connection", isCounter, func(c *server.ConnectionInfo) float64 { return float64(c.Sent) }, true},
	{"connection_metrics", "connection_incoming_packets_total", "Total number of packets received on a connection", isCounter, func(c *server.ConnectionInfo) float64 { return float64(c.Reads) }, true},
	{"connection_metrics", "connection_outgoing_packets_total", "Total number of packets sent on a connection", isCounter, func(c *server.ConnectionInfo) float64 { return float64(c.Writes) }, true},
	{"connection_metrics", "connection_channels", "Channels on a connection", isGauge, func(c *server.ConnectionInfo) float64 { return float64(len(c.Channels)) }, false},
}

// connected returns the open connections, their channels, and how many consumers these have.
func (c *collector) connected() (conns []server.ConnectionInfo, channels []server.ChannelInfo, consumers int) {
	conns = c.Server.List()
	for _, conn := range conns {
		channels = append(channels, conn.Channels...)
		for _, ch := range conn.Channels {
			consumers += len(ch.Consumers)
		}
	}
	return conns, channels, consumers
}

// connections shows sums over connections and channels, but not of their counters, which would
// fall when one closes.
func (c *collector) connections(s *sink) {
	if c.endpoint == detailed {
		return
	}
	conns, channels, consumers := c.connected()
	if c.endpoint == aggregated {
		total(s, connectionMetrics, len(conns), func(i int) server.ConnectionInfo { return conns[i] })
		total(s, channelMetrics, len(channels), func(i int) server.ChannelInfo { return channels[i] })
	}
	s.gauge("connections", "Connections currently open", float64(len(conns)))
	s.gauge("channels", "Channels currently open", float64(len(channels)))
	s.gauge("consumers", "Consumers currently connected", float64(consumers))
}
