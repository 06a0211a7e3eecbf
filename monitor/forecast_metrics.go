package monitor

import "github.com/prometheus/client_golang/prometheus"

// maxRiskSeries bounds the queues at risk that have a metric of their own: those that
// will miss most.
const maxRiskSeries = 100

var (
	willMissDesc = prometheus.NewDesc("curfew_forecast_misses",
		"Ready messages that will miss their deadlines, if consumers go on as they do.", nil, nil)
	atRiskDesc = prometheus.NewDesc("curfew_queues_at_risk",
		"Queues in which the first message that will miss its deadline has used up its share of the time.", nil, nil)
	queueRiskDesc = prometheus.NewDesc("curfew_queue_forecast_misses",
		"The same of each queue at risk, those with most of them.", []string{"vhost", "queue"}, nil)
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
