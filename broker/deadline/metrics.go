package deadline

import (
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics takes what a prometheus.Collector reads for a scrape, with the name and the help of each metric next to its value. Labels are
// names and values in turn.
type Metrics chan<- prometheus.Metric

// Label is a name as the value of a label. Prometheus takes only UTF-8, and a name that an older version has saved may be anything: that one is quoted.
func Label(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return strconv.QuoteToASCII(name)
}

// Gauge adds a value that may fall.
func (m Metrics) Gauge(name, help string, v float64, labels ...string) {
	m.add(prometheus.GaugeValue, name, help, v, labels)
}

// Counter adds a value that only grows.
func (m Metrics) Counter(name, help string, v uint64, labels ...string) {
	m.add(prometheus.CounterValue, name, help, float64(v), labels)
}

func (m Metrics) add(kind prometheus.ValueType, name, help string, v float64, labels []string) {
	var names, values []string
	for label := range slices.Chunk(labels, 2) {
		names, values = append(names, label[0]), append(values, label[1])
	}
	m <- prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, names, nil), kind, v, values...)
}
