package monitor

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// maxPeerSeries bounds the instances that have metrics of their own; all others share
// the label "_other".
const maxPeerSeries = 100

// The label is not called instance: that one is the scraped process.
var (
	silentDesc = prometheus.NewDesc("curfew_instance_silent",
		"1 if another instance, which shares this one's Redis, gives no sign of life.", []string{"peer"}, nil)
	dueDesc = prometheus.NewDesc("curfew_instance_due_deadlines",
		"Deadlines that are due in the schedule of a silent instance, as counted by the instance whose turn it is.", []string{"peer"}, nil)
)

// Describe implements prometheus.Collector.
func (w *watcher) Describe(out chan<- *prometheus.Desc) {
	out <- silentDesc
	out <- dueDesc
}

// Collect implements prometheus.Collector.
func (w *watcher) Collect(out chan<- prometheus.Metric) {
	type figures struct {
		silent bool
		due    int64
	}
	series := make(map[string]figures)
	w.mu.Lock()
	for i, name := range slices.Sorted(maps.Keys(w.peers)) {
		p := w.peers[name]
		if i >= maxPeerSeries {
			name = otherQueues
		}
		f := series[name]
		series[name] = figures{f.silent || p.silent, f.due + p.overdue.Due}
	}
	w.mu.Unlock()
	for name, f := range series {
		silent := 0.0
		if f.silent {
			silent = 1
		}
		out <- prometheus.MustNewConstMetric(silentDesc, prometheus.GaugeValue, silent, name)
		out <- prometheus.MustNewConstMetric(dueDesc, prometheus.GaugeValue, float64(f.due), name)
	}
}
