package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
	"curfew/monitor/incident"
)

// heldMessages collects how many messages consumers hold past their deadlines.
type heldMessages struct{ own *ownBroker }

var heldDesc = prometheus.NewDesc("curfew_deadlines_held",
	"Messages that consumers hold past their deadlines. They expire if they are returned.", []string{"vhost", "queue"}, nil)

// heldQueues bounds the queues with a count of their own; all others share the label otherQueues.
const heldQueues, otherQueues = 500, "_other"

// Describe implements prometheus.Collector.
func (heldMessages) Describe(out chan<- *prometheus.Desc) { out <- heldDesc }

// Collect implements prometheus.Collector.
func (h heldMessages) Collect(out chan<- prometheus.Metric) {
	counts := make(map[incident.QueueName]float64)
	for _, holder := range h.own.holders(nil) {
		of := holder.QueueName
		if _, known := counts[of]; !known && len(counts) >= heldQueues {
			of = incident.QueueName{VHost: otherQueues, Name: otherQueues}
		}
		counts[of] += float64(holder.Count)
	}
	for of, n := range counts {
		out <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, n, deadline.Label(of.VHost), deadline.Label(of.Name))
	}
}
