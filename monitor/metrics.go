package monitor

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
)

// metrics of a monitor. Gauges are read when they are scraped.
type metrics struct {
	lateness *latenessHistogram
	fired    *prometheus.CounterVec // vhost, queue, action, path
	failed   *prometheus.CounterVec // vhost, queue, reason
	restarts *prometheus.CounterVec // loop
	lagged   prometheus.Counter
	spared   prometheus.Counter // settled before they were indexed

	results       [deadline.Outcomes]prometheus.Counter
	added         [2]prometheus.Counter // ok, error
	removed       [2]prometheus.Counter // ok, error
	writesDropped prometheus.Counter
	writeTime     prometheus.Histogram
	missing       prometheus.Counter
	orphans       prometheus.Counter
	skew          prometheus.Gauge
}

func newMetrics(r prometheus.Registerer, m *Monitor) (*metrics, error) {
	reg := &registry{to: r}
	x := &metrics{
		lateness: newLatenessHistogram(),
		fired: reg.counters("curfew_deadlines_fired_total",
			"Messages that expired unconsumed, by what became of them (action) and how the expiry came about (path).", "vhost", "queue", "action", "path"),
		failed: reg.counters("curfew_deadlines_failed_total",
			"Messages that expired, but late (reason late, or stalled: the schedule did not fire), or with nowhere to go (reason parked).", "vhost", "queue", "reason"),
		restarts: reg.counters("curfew_loop_restarts_total",
			"Loops of the monitor that ended and were started again.", "loop"),
		lagged: reg.counter("curfew_feed_lagged_total",
			"Times that events from the primary were lost and a snapshot was taken instead."),
		spared: reg.counter("curfew_shadows_spared_total",
			"Messages settled before their shadow was indexed or written."),
	}
	reg.add(x.lateness)
	results := reg.counters("curfew_fire_results_total",
		"Answers from the primary to requests to expire a message.", "outcome")
	for i := range x.results {
		x.results[i] = results.WithLabelValues(deadline.Outcome(i).String())
	}
	reg.gauge("curfew_deadlines_pending", "Deadlines waiting for their time.",
		func() float64 { return float64(m.pending()) })
	reg.gauge("curfew_fire_turn_seconds_max", "The longest turn of the loop that fires deadlines in the last minute or two.",
		func() float64 { return m.turns.Value(m.primary.Now()).Seconds() })
	reg.gauge("curfew_deadline_next_timestamp_seconds",
		"The next deadline, leaving out those that have passed while consumers hold the messages; 0 when there is none.",
		func() float64 { return float64(m.nextDeadline()) / 1e6 })
	reg.add(&beats{loops: m.loops, desc: prometheus.NewDesc("curfew_scheduler_last_tick_timestamp_seconds",
		"When a loop of the monitor was last alive.", []string{"loop"}, nil)})
	if m.redis != nil {
		x.addSchedule(reg, m.redis)
	}
	if m.forecaster != nil {
		reg.add(forecastMetrics{m})
	}
	return x, reg.err
}

// addSchedule adds what only a schedule in Redis has.
func (x *metrics) addSchedule(reg *registry, r *redisSchedule) {
	writes := reg.counters("curfew_shadow_writes_total",
		"Shadows written to Redis, by operation and result. The result dropped: given up when Redis failed.", "op", "result")
	for i, result := range []string{"ok", "error"} {
		x.added[i] = writes.WithLabelValues("add", result)
		x.removed[i] = writes.WithLabelValues("remove", result)
	}
	x.writesDropped = writes.WithLabelValues("any", "dropped")
	x.writeTime = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "curfew_shadow_write_duration_seconds",
		Help:    "Time a batch of writes to Redis took.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
	})
	reg.add(x.writeTime)
	repaired := reg.counters("curfew_reconcile_repaired_total",
		"Differences between Redis and the primary that were repaired.", "kind")
	x.missing, x.orphans = repaired.WithLabelValues("missing"), repaired.WithLabelValues("orphan")
	reg.gauge("curfew_schedule_up", "1 if the schedule in Redis fires; otherwise the one in this process does.", func() float64 {
		if r.fires() {
			return 1
		}
		return 0
	})
	reg.gauge("curfew_messages_missing", "Messages of an earlier run that have deadlines in Redis but are not here: the data folder was new at this start.",
		func() float64 { return float64(r.orphans.Load()) })
	x.skew = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "curfew_clock_skew_seconds",
		Help: "The clock of Redis minus that of this process.",
	})
	reg.add(x.skew)
}

// countResults counts the answers to one batch.
func (x *metrics) countResults(count *[deadline.Outcomes]int) {
	for i, n := range count {
		if n > 0 {
			x.results[i].Add(float64(n))
		}
	}
}

// wrote counts one batch written to Redis.
func (x *metrics) wrote(added, removed int, took time.Duration, err error) {
	result := 0
	if err != nil {
		result = 1
	}
	x.added[result].Add(float64(added))
	x.removed[result].Add(float64(removed))
	x.writeTime.Observe(took.Seconds())
}

// beats collects when each loop was last alive.
type beats struct {
	loops []*loop
	desc  *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (b *beats) Describe(out chan<- *prometheus.Desc) { out <- b.desc }

// Collect implements prometheus.Collector.
func (b *beats) Collect(out chan<- prometheus.Metric) {
	for _, l := range b.loops {
		at := float64(l.lastTick().UnixMilli()) / 1000
		out <- prometheus.MustNewConstMetric(b.desc, prometheus.GaugeValue, at, l.name)
	}
}

// registry registers the metrics that it makes, and keeps the first error.
type registry struct {
	to  prometheus.Registerer
	err error
}

func (g *registry) add(c prometheus.Collector) {
	if err := g.to.Register(c); err != nil && g.err == nil {
		g.err = fmt.Errorf("monitor: register metric: %w", err)
	}
}

func (g *registry) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	g.add(c)
	return c
}

func (g *registry) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	g.add(c)
	return c
}

func (g *registry) gauge(name, help string, value func() float64) {
	g.add(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}
