package monitor

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

func TestLatenessHistogram(t *testing.T) {
	h, c := &latenessHistogram{lastHour: lastHour{started: time.Now()}}, latenessCount{}
	for _, micros := range []time.Duration{300, 1000, 1001, 3000, 999_000, 1_000_000, 1_000_001, 60_000_000, 60_000_001} {
		c.add(micros * time.Microsecond)
	}
	h.lastHour.add(time.Now(), &c)
	reg := prometheus.NewRegistry()
	reg.MustRegister(h)
	families, err := reg.Gather()
	require.NoError(t, err)
	got := families[0].GetMetric()[0].GetHistogram()
	require.Equal(t, uint64(9), got.GetSampleCount())
	require.InDelta(t, 123.004303, got.GetSampleSum(), 1e-6)
	want := map[float64]uint64{0.001: 2, 0.002: 3, 0.005: 4, 0.5: 4, 1: 6, 2.5: 7, 60: 8}
	for _, bucket := range got.GetBucket() {
		if n, ok := want[bucket.GetUpperBound()]; ok {
			require.Equal(t, n, bucket.GetCumulativeCount(), "le %v", bucket.GetUpperBound())
		}
	}
}

func TestLatenessOfNothing(t *testing.T) {
	var l Lateness
	_, ok := l.Within(0.99)
	require.False(t, ok)
}
