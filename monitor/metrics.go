package monitor

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of a monitor. Gauges are read when they are scraped.
type metrics struct {
	lateness *latenessHistogram
	fired    *prometheus.CounterVec // vhost, queue, action, path
	failed   *prometheus.CounterVec // vhost, queue, reason
	restarts *prometheus.CounterVec // loop
}

func newMetrics(m *Monitor) (*metrics, error) {
	reg := NewRegistry(m.options.Registerer)
	x := &metrics{
		lateness: newLatenessHistogram(),
		fired: reg.Counters("curfew_deadlines_fired_total",
			"Messages that expired unconsumed, by what became of them (action) and how the expiry came about (path).", "vhost", "queue", "action", "path"),
		failed: reg.Counters("curfew_deadlines_failed_total",
			"Messages that expired late (reason late; stalled: because the schedule in Redis did not fire), or with nowhere to go (reason parked).", "vhost", "queue", "reason"),
		restarts: reg.Counters("curfew_loop_restarts_total",
			"Loops of the monitor that ended and were started again.", "loop"),
	}
	reg.Add(x.lateness)
	reg.Gauge("curfew_deadlines_pending", "Deadlines waiting for their time.", func() float64 {
		pending, _ := m.options.Pending.Waiting()
		return float64(pending)
	})
	reg.Gauge("curfew_deadline_next_timestamp_seconds",
		"The next deadline, leaving out those that have passed while consumers hold the messages; 0 when there is none.",
		func() float64 { return float64(m.nextDeadline()) / 1e6 })
	reg.Add(&beats{m, prometheus.NewDesc("curfew_scheduler_last_tick_timestamp_seconds",
		"When a loop of the monitor was last alive.", []string{"loop"}, nil)})
	if m.forecaster != nil {
		reg.Add(forecastMetrics{m})
	}
	return x, reg.Err
}

// beats collects when each loop was last alive.
type beats struct {
	m    *Monitor
	desc *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (b *beats) Describe(out chan<- *prometheus.Desc) { out <- b.desc }

// Collect implements prometheus.Collector.
func (b *beats) Collect(out chan<- prometheus.Metric) {
	for _, l := range b.m.loops {
		at := float64(l.LastTick().UnixMilli()) / 1000
		out <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, at, l.name)
	}
}

// Registry registers the metrics that it makes, and keeps the first error.
type Registry struct {
	Err error
	to  prometheus.Registerer
}

// NewRegistry makes metrics for to.
func NewRegistry(to prometheus.Registerer) *Registry { return &Registry{to: to} }

// Add registers a metric that the caller made.
func (g *Registry) Add(c prometheus.Collector) {
	if err := g.to.Register(c); err != nil && g.Err == nil {
		g.Err = fmt.Errorf("monitor: register metric: %w", err)
	}
}

// Counters makes a counter for each combination of labels.
func (g *Registry) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	g.Add(c)
	return c
}

// Counter makes a counter without labels.
func (g *Registry) Counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	g.Add(c)
	return c
}

// Gauge makes a gauge that is read when it is scraped.
func (g *Registry) Gauge(name, help string, value func() float64) {
	g.Add(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}
