package monitor

import (
	"cmp"
	"curfew/broker/deadline"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// maxRiskSeries bounds the queues at risk that have a metric of their own: those with the most
// messages at risk.
const maxRiskSeries = 100

var (
	atRiskDesc = prometheus.NewDesc("curfew_forecast_misses",
		"Ready messages at risk: they will expire if consumers carry on as they do, in queues where that is a loss.", nil, nil)
	asMeantDesc = prometheus.NewDesc("curfew_forecast_expiries_meant",
		"Ready messages that will expire in queues where that is no loss.", nil, nil)
	queuesDesc = prometheus.NewDesc("curfew_queues_at_risk",
		"Queues whose messages at risk are nearly due: the first of them has used up half of its time to live.", nil, nil)
	queueRiskDesc = prometheus.NewDesc("curfew_queue_forecast_misses",
		"Ready messages at risk and nearly due, for the 100 queues with the most.", []string{"vhost", "queue"}, nil)
)

// forecastMetrics shows the monitor's forecasts.
type forecastMetrics struct{ m *Monitor }

// Describe implements prometheus.Collector.
func (forecastMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- atRiskDesc
	out <- asMeantDesc
	out <- queuesDesc
	out <- queueRiskDesc
}

// Collect implements prometheus.Collector.
func (x forecastMetrics) Collect(out chan<- prometheus.Metric) {
	atRisk, asMeant, queues := 0, 0, 0
	for _, f := range slices.SortedFunc(slices.Values(x.m.Forecasts()), func(a, b Forecast) int { return cmp.Compare(b.AtRisk, a.AtRisk) }) {
		atRisk, asMeant = atRisk+f.AtRisk, asMeant+f.AsMeant
		if !f.NearlyDue {
			continue
		}
		if queues++; queues <= maxRiskSeries {
			out <- prometheus.MustNewConstMetric(queueRiskDesc, prometheus.GaugeValue, float64(f.AtRisk), deadline.Label(f.VHost), deadline.Label(f.Queue))
		}
	}
	out <- prometheus.MustNewConstMetric(atRiskDesc, prometheus.GaugeValue, float64(atRisk))
	out <- prometheus.MustNewConstMetric(asMeantDesc, prometheus.GaugeValue, float64(asMeant))
	out <- prometheus.MustNewConstMetric(queuesDesc, prometheus.GaugeValue, float64(queues))
}
