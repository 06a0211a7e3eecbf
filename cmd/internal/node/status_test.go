package node

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
)

// TestStatusShowsDeadlinesRoundedUp, as every list of them.
func TestStatusShowsDeadlinesRoundedUp(t *testing.T) {
	metrics := prometheus.NewRegistry()
	next := prometheus.NewGauge(prometheus.GaugeOpts{Name: "curfew_deadline_next_timestamp_seconds"})
	metrics.MustRegister(next)
	for seconds, want := range map[float64]int64{1795291637.406001: 1795291637407, 1795291637.407: 1795291637407} {
		next.Set(seconds)
		var s Status
		s.measure(metrics)
		assert.Equal(t, want, s.Next.UnixMilli())
	}
}

func TestQuantile(t *testing.T) {
	bounds, counts := []float64{1, 2, 4}, []uint64{50, 98, 99}
	assert.Equal(t, 1.0, *quantile(0.5, bounds, counts, 100))
	assert.Equal(t, 4.0, *quantile(0.99, bounds, counts, 100))
	assert.Equal(t, 4.0, *quantile(1, bounds, counts, 100), "above the last bound")
	assert.Nil(t, quantile(0.5, bounds, []uint64{0, 0, 0}, 0))
}
