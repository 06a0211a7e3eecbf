package alert

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of alerting itself.
type metrics struct {
	notifications *prometheus.CounterVec // sink, result: sent, failed, dropped
	queued        *prometheus.GaugeVec   // sink
	suppressed    *prometheus.CounterVec // reason: silence, rate_limit, overflow
}

func newMetrics(r prometheus.Registerer, a *Alerts) (*metrics, error) {
	m := &metrics{
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "curfew_alert_notifications_total",
			Help: "Notifications by sink and result.",
		}, []string{"sink", "result"}),
		queued: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "curfew_alert_queue_length",
			Help: "Notifications waiting for a sink.",
		}, []string{"sink"}),
		suppressed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "curfew_alert_suppressed_total",
			Help: "Alerts that were silenced, withheld since too many fired at once, or found no room.",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{m.notifications, m.queued, m.suppressed, firingCollector{a.tracker}, rulesInForce(a)} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("alert: register metric: %w", err)
		}
	}
	return m, nil
}

// rulesInForce is 1 unless the alerts file, as it is now, could not be put in force.
func rulesInForce(a *Alerts) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "curfew_alert_rules_in_force",
		Help: "1 if the alerts file is in force; 0 if it has a mistake, so that the previous sinks and rules stay in force.",
	}, func() float64 {
		if a.FileError() != nil {
			return 0
		}
		return 1
	})
}

// forget removes the queue length of a sink that is gone; its counters stay.
func (m *metrics) forget(sink string) { m.queued.DeleteLabelValues(sink) }

func (m *metrics) of(sink string) counters {
	return counters{
		sent:    m.notifications.WithLabelValues(sink, "sent"),
		failed:  m.notifications.WithLabelValues(sink, "failed"),
		dropped: m.notifications.WithLabelValues(sink, "dropped"),
		length:  m.queued.WithLabelValues(sink),
	}
}

var firingDesc = prometheus.NewDesc("curfew_alerts_firing", "Alerts that sinks have been notified of and that are not over.", []string{"alertname"}, nil)

// firingCollector counts what fires when it is scraped.
type firingCollector struct{ t *tracker }

func (c firingCollector) Describe(out chan<- *prometheus.Desc) { out <- firingDesc }

func (c firingCollector) Collect(out chan<- prometheus.Metric) {
	count := c.t.countFiring()
	for k, n := range count[:ruled] {
		out <- prometheus.MustNewConstMetric(firingDesc, prometheus.GaugeValue, float64(n), Kind(k).String())
	}
}
