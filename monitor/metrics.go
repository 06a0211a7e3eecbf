package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics of a monitor. Gauges are read when they are scraped.
type metrics struct {
	lateness *latenessHistogram
	fired    *prometheus.CounterVec // vhost, queue, action, path
	failed   *prometheus.CounterVec // vhost, queue, reason
	restarts *prometheus.CounterVec // loop
}

func newMetrics(m *Monitor) *metrics {
	to := m.options.Registerer
	reg := promauto.With(to)
	x := &metrics{
		lateness: &latenessHistogram{lastHour: lastHour{started: time.Now()}},
		fired: reg.NewCounterVec(prometheus.CounterOpts{Name: "curfew_deadlines_fired_total",
			Help: "Messages that expired unconsumed, by what became of them (action) and how the expiry came about (path)."}, []string{"vhost", "queue", "action", "path"}),
		failed: reg.NewCounterVec(prometheus.CounterOpts{Name: "curfew_deadlines_failed_total",
			Help: "Messages that expired late (reason late; stalled: because the schedule in Redis did not fire; rabbitmq: in a queue that is only observed), or with nowhere to go (reason parked)."}, []string{"vhost", "queue", "reason"}),
		restarts: reg.NewCounterVec(prometheus.CounterOpts{Name: "curfew_loop_restarts_total",
			Help: "Loops of the monitor that ended and were started again."}, []string{"loop"}),
	}
	reg.NewGaugeFunc(prometheus.GaugeOpts{Name: "curfew_deadlines_pending", Help: "Deadlines waiting for their time."}, func() float64 {
		pending, _ := m.options.Pending.Waiting()
		return float64(pending)
	})
	reg.NewGaugeFunc(prometheus.GaugeOpts{Name: "curfew_deadline_next_timestamp_seconds",
		Help: "The next deadline, leaving out those that have passed while consumers hold the messages; 0 when there is none."},
		func() float64 {
			_, nextAt := m.options.Pending.Waiting()
			if nextAt != 0 {
				nextAt = nextAt.Add(-m.options.Source.ClockOffset()) // by the wall clock
			}
			return float64(nextAt) / 1e6
		})
	to.MustRegister(x.lateness)
	return x
}
