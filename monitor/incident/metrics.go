package incident

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
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
	a.heart.lastTime = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "curfew_heartbeat_last_success_timestamp_seconds", Help: "When the URL of the dead man's switch last answered.",
	}, nil)
	for _, c := range []prometheus.Collector{m.notifications, m.queued, a.heart.lastTime, viewCollector{a}} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("incident: register metric: %w", err)
		}
	}
	m.begin(logName)
	return m, nil
}

// begin has the series of a sink begin with 0. It returns how many notifications wait there.
func (m *metrics) begin(sink string) (length prometheus.Gauge) {
	for _, result := range []string{"sent", "failed", "dropped"} {
		m.notifications.WithLabelValues(sink, result)
	}
	return m.queued.WithLabelValues(sink)
}

var (
	openDesc   = prometheus.NewDesc("curfew_incident", "Incidents that are not over: how many messages, or else how many things, each condition is about.", []string{"condition", "level"}, nil)
	atRiskDesc = prometheus.NewDesc("curfew_forecast_misses",
		"Ready messages at risk: they will expire if consumers carry on as they do, in queues where that is a loss.", nil, nil)
	asMeantDesc = prometheus.NewDesc("curfew_forecast_expiries_meant",
		"Ready messages that will expire in queues where that is no loss.", nil, nil)
	queuesDesc = prometheus.NewDesc("curfew_queues_at_risk",
		"Queues whose messages at risk are nearly due: the first of them has used up half of its time to live.", nil, nil)
	queueRiskDesc = prometheus.NewDesc("curfew_queue_forecast_misses",
		"Ready messages at risk and nearly due, for the 100 queues with the most.", []string{"vhost", "queue"}, nil)
)

// maxRiskSeries bounds the queues at risk that have a metric of their own: those with the most messages at risk.
const maxRiskSeries = 100

// viewCollector shows what is wrong when it is scraped, and the forecasts if they are known. Each condition has its series all the time, so that a
// rule sees the beginning.
type viewCollector struct{ a *Incidents }

// Describe implements prometheus.Collector.
func (viewCollector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{openDesc, atRiskDesc, asMeantDesc, queuesDesc, queueRiskDesc} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c viewCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(of *prometheus.Desc, n float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(of, prometheus.GaugeValue, n, labels...)
	}
	seen, counts := c.a.View(), make(map[[2]string]float64) // by condition and level
	for _, of := range Conditions {
		counts[[2]string{of.Name, string(of.Level)}] = 0
	}
	for _, i := range seen.Open {
		counts[[2]string{i.Condition, string(i.Level)}] += float64(max(i.Count, 1))
	}
	for of, n := range counts {
		gauge(openDesc, n, of[0], of[1])
	}
	if seen.Forecasts == nil {
		return
	}
	atRisk, asMeant, queues := 0, 0, 0
	for _, f := range slices.SortedFunc(slices.Values(seen.Forecasts), func(a, b deadline.Forecast) int { return cmp.Compare(b.AtRisk, a.AtRisk) }) {
		atRisk, asMeant = atRisk+f.AtRisk, asMeant+f.AsMeant
		if !f.NearlyDue {
			continue
		}
		if queues++; queues <= maxRiskSeries {
			gauge(queueRiskDesc, float64(f.AtRisk), deadline.Label(f.VHost), deadline.Label(f.Queue))
		}
	}
	gauge(atRiskDesc, float64(atRisk))
	gauge(asMeantDesc, float64(asMeant))
	gauge(queuesDesc, float64(queues))
}
