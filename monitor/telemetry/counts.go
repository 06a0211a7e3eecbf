package telemetry

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are the metrics of one signal.
type counts struct{ exported, dropped, failures prometheus.Counter }

// newCounts registers them, by signal.
func newCounts(r prometheus.Registerer) (of func(signal string) counts, err error) {
	vector := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"signal"})
	}
	exported := vector("curfew_otel_exported_total", "Spans, and data points of metrics, that the OpenTelemetry collector has taken.")
	dropped := vector("curfew_otel_dropped_total", "Those it never got, or did not take: it was away too long, rejected them, or they came faster than it took them.")
	failures := vector("curfew_otel_failures_total", "Requests to the collector that failed, tries again included.")
	for _, c := range []prometheus.Collector{exported, dropped, failures} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("telemetry: register metric: %w", err)
		}
	}
	return func(signal string) counts {
		return counts{exported.WithLabelValues(signal), dropped.WithLabelValues(signal), failures.WithLabelValues(signal)}
	}, nil
}
