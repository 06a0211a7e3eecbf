package monitor

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// latenessMillis are the upper bounds of the histogram's buckets.
var latenessMillis = [...]int64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000}

// latenessCount adds up latenesses before they reach the histogram. The last
// bucket has no upper bound.
type latenessCount struct {
	buckets [len(latenessMillis) + 1]uint64
	millis  int64
}

func (c *latenessCount) add(millis int64) {
	i := 0
	for i < len(latenessMillis) && millis > latenessMillis[i] {
		i++
	}
	c.buckets[i]++
	c.millis += millis
}

// latenessHistogram is a Prometheus histogram that takes a batch at a time: one
// Observe per message would cost more than firing it.
type latenessHistogram struct {
	desc    *prometheus.Desc
	buckets [len(latenessMillis) + 1]atomic.Uint64
	millis  atomic.Int64
}

func newLatenessHistogram() *latenessHistogram {
	return &latenessHistogram{desc: prometheus.NewDesc("curfew_deadline_lateness_seconds",
		"How long after its deadline an expired message left its queue; without those a consumer gave back later than that.", nil, nil)}
}

func (h *latenessHistogram) merge(c *latenessCount) {
	for i, n := range c.buckets {
		if n > 0 {
			h.buckets[i].Add(n)
		}
	}
	h.millis.Add(c.millis)
}

// Describe implements prometheus.Collector.
func (h *latenessHistogram) Describe(out chan<- *prometheus.Desc) { out <- h.desc }

// Collect implements prometheus.Collector.
func (h *latenessHistogram) Collect(out chan<- prometheus.Metric) {
	cumulative := make(map[float64]uint64, len(latenessMillis))
	var count uint64
	for i := range h.buckets {
		count += h.buckets[i].Load()
		if i < len(latenessMillis) {
			cumulative[float64(latenessMillis[i])/1000] = count
		}
	}
	out <- prometheus.MustNewConstHistogram(h.desc, count, float64(h.millis.Load())/1000, cumulative)
}
