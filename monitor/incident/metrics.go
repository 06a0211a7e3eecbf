package incident

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics of alerting itself.
type metrics struct {
	notifications *prometheus.CounterVec // sink, result: sent, failed, dropped
	queued        *prometheus.GaugeVec   // sink
}

func newMetrics(r prometheus.Registerer, a *Incidents) (*metrics, error) {
	m := &metrics{
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "curfew_alert_notifications_total", Help: "Notifications by sink and result."}, []string{"sink", "result"}),
		queued:        prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "curfew_alert_queue_length", Help: "Notifications waiting for a sink."}, []string{"sink"}),
	}
	for _, c := range []prometheus.Collector{m.notifications, m.queued, openCollector{a}} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("incident: register metric: %w", err)
		}
	}
	m.of(logName) // its series begin with 0, as those of all sinks
	return m, nil
}

func (m *metrics) of(sink string) counters {
	return counters{
		sent:    m.notifications.WithLabelValues(sink, "sent"),
		failed:  m.notifications.WithLabelValues(sink, "failed"),
		dropped: m.notifications.WithLabelValues(sink, "dropped"),
		length:  m.queued.WithLabelValues(sink),
	}
}

var openDesc = prometheus.NewDesc("curfew_incident", "Incidents that are not over: how many messages, or else how many things, each condition is about.", []string{"condition", "level"}, nil)

// openCollector counts what is wrong when it is scraped. Each condition has its series all the time, so that a rule sees the beginning.
type openCollector struct{ a *Incidents }

func (c openCollector) Describe(out chan<- *prometheus.Desc) { out <- openDesc }

func (c openCollector) Collect(out chan<- prometheus.Metric) {
	counts := make(map[[2]string]float64) // by condition and level
	for _, of := range Conditions {
		counts[[2]string{of.Name, string(of.Level)}] = 0
	}
	for _, i := range c.a.List() {
		counts[[2]string{i.Condition, string(i.Level)}] += float64(max(i.Count, 1))
	}
	for of, n := range counts {
		out <- prometheus.MustNewConstMetric(openDesc, prometheus.GaugeValue, n, of[0], of[1])
	}
}
