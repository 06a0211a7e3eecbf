package schedule

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"curfew/broker/deadline"
)

// metrics of a scheduler. Gauges are read when they are scraped.
type metrics struct {
	lagged prometheus.Counter
	spared prometheus.Counter // settled before they were indexed

	results       [deadline.Outcomes]prometheus.Counter
	added         [2]prometheus.Counter // ok, error
	removed       [2]prometheus.Counter // ok, error
	writesDropped prometheus.Counter
	writeTime     prometheus.Histogram
	missing       prometheus.Counter
	orphans       prometheus.Counter
	skew          prometheus.Gauge
}

func newMetrics(s *Scheduler) *metrics {
	reg := promauto.With(s.options.Registerer)
	x := &metrics{
		lagged: reg.NewCounter(prometheus.CounterOpts{Name: "curfew_feed_lagged_total",
			Help: "Times that events from the primary were lost and a snapshot was taken instead."}),
		spared: reg.NewCounter(prometheus.CounterOpts{Name: "curfew_shadows_spared_total",
			Help: "Messages settled before their shadow was indexed or written."}),
	}
	results := reg.NewCounterVec(prometheus.CounterOpts{Name: "curfew_fire_results_total",
		Help: "Answers from the primary to requests to expire a message."}, []string{"outcome"})
	for i := range x.results {
		x.results[i] = results.WithLabelValues(deadline.Outcome(i).String())
	}
	reg.NewGaugeFunc(prometheus.GaugeOpts{Name: "curfew_fire_turn_seconds_max", Help: "The longest turn of the loop that fires deadlines in the last minute or two."},
		func() float64 { return s.turns.Value(s.primary.Now()).Seconds() })
	if s.redis != nil {
		x.addRedis(reg, s.redis)
	}
	return x
}

// addRedis adds what only a schedule in Redis has.
func (x *metrics) addRedis(reg promauto.Factory, r *redisSchedule) {
	writes := reg.NewCounterVec(prometheus.CounterOpts{Name: "curfew_shadow_writes_total",
		Help: "Shadows written to Redis, by operation and result. The result dropped: given up when Redis failed."}, []string{"op", "result"})
	for i, result := range []string{"ok", "error"} {
		x.added[i] = writes.WithLabelValues("add", result)
		x.removed[i] = writes.WithLabelValues("remove", result)
	}
	x.writesDropped = writes.WithLabelValues("any", "dropped")
	x.writeTime = reg.NewHistogram(prometheus.HistogramOpts{
		Name:    "curfew_shadow_write_duration_seconds",
		Help:    "Time a batch of writes to Redis took.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
	})
	repaired := reg.NewCounterVec(prometheus.CounterOpts{Name: "curfew_reconcile_repaired_total",
		Help: "Differences between Redis and the primary that were repaired."}, []string{"kind"})
	x.missing, x.orphans = repaired.WithLabelValues("missing"), repaired.WithLabelValues("orphan")
	reg.NewGaugeFunc(prometheus.GaugeOpts{Name: "curfew_schedule_up", Help: "1 if the schedule in Redis fires; otherwise the one in this process does."}, func() float64 {
		if r.fires() {
			return 1
		}
		return 0
	})
	reg.NewGaugeFunc(prometheus.GaugeOpts{Name: "curfew_messages_missing",
		Help: "Messages of an earlier run that have deadlines in Redis but are not here: the data folder was new at this start."},
		func() float64 { return float64(r.orphans.Load()) })
	x.skew = reg.NewGauge(prometheus.GaugeOpts{
		Name: "curfew_clock_skew_seconds",
		Help: "The clock of Redis minus that of this process.",
	})
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
