package monitor

import "github.com/prometheus/client_golang/prometheus"

// maxRiskSeries bounds the queues at risk that have a metric of their own: those with the most
// messages at risk.
const maxRiskSeries = 100

var (
	willMissDesc = prometheus.NewDesc("curfew_forecast_misses",
		"Ready messages that will expire if consumers carry on as they do.", nil, nil)
	atRiskDesc = prometheus.NewDesc("curfew_queues_at_risk",
		"Queues at risk: their first message that will expire has used up half of its time to live.", nil, nil)
	queueRiskDesc = prometheus.NewDesc("curfew_queue_forecast_misses",
		"Ready messages that will expire, by queue at risk, for the 100 queues with the most.", []string{"vhost", "queue"}, nil)
)

// forecastMetrics shows the monitor's forecasts.
type forecastMetrics struct{ m *Monitor }

// Describe implements prometheus.Collector.
func (forecastMetrics) Describe(out chan<- *prometheus.Desc) {
	out <- willMissDesc
	out <- atRiskDesc
	out <- queueRiskDesc
}

// Collect implements prometheus.Collector.
func (x forecastMetrics) Collect(out chan<- prometheus.Metric) {
	misses, atRisk := 0, 0
	for _, f := range x.m.Forecasts() {
		misses += f.WillMiss
		if !f.AtRisk {
			continue
		}
		if atRisk++; atRisk <= maxRiskSeries {
			out <- prometheus.MustNewConstMetric(queueRiskDesc, prometheus.GaugeValue, float64(f.WillMiss), f.VHost, f.Queue)
		}
	}
	out <- prometheus.MustNewConstMetric(willMissDesc, prometheus.GaugeValue, float64(misses))
	out <- prometheus.MustNewConstMetric(atRiskDesc, prometheus.GaugeValue, float64(atRisk))
}
