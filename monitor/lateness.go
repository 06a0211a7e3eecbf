package monitor

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/scheduler"
)

// latenessMillis are the upper bounds of the histogram's buckets.
var latenessMillis = [...]int64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000}

// latenessCount adds up latenesses before they reach the histogram. The last
// bucket has no upper bound.
type latenessCount struct {
	buckets [len(latenessMillis) + 1]uint64
	micros  int64
}

func (c *latenessCount) add(micros int64) {
	i := 0
	for i < len(latenessMillis) && micros > latenessMillis[i]*1000 {
		i++
	}
	c.buckets[i]++
	c.micros += micros
}

func (c *latenessCount) addAll(o *latenessCount) {
	for i, n := range o.buckets {
		c.buckets[i] += n
	}
	c.micros += o.micros
}

// latenessHistogram is a Prometheus histogram that takes a batch at a time: one
// Observe per message would cost more than firing it.
type latenessHistogram struct {
	desc    *prometheus.Desc
	buckets [len(latenessMillis) + 1]atomic.Uint64
	micros  atomic.Int64
	lately  lately
}

func newLatenessHistogram() *latenessHistogram {
	return &latenessHistogram{lately: lately{started: time.Now()}, desc: prometheus.NewDesc("curfew_deadline_lateness_seconds",
		"How long after its deadline an expired message left its queue; without those a consumer gave back later than that.", nil, nil)}
}

func (h *latenessHistogram) merge(c *latenessCount) {
	for i, n := range c.buckets {
		if n > 0 {
			h.buckets[i].Add(n)
		}
	}
	h.micros.Add(c.micros)
	h.lately.add(time.Now(), c)
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
	out <- prometheus.MustNewConstHistogram(h.desc, count, float64(h.micros.Load())/1e6, cumulative)
}

// Lateness is how late messages expired, since the monitor was made.
type Lateness struct {
	// UpTo are the upper bounds of the buckets in ms; Counts has one more, of what was
	// later than all.
	UpTo   []int64  `json:"up_to"`
	Counts []uint64 `json:"counts"`
	Millis int64    `json:"millis"` // the sum over all messages, rounded up
}

// Total is how many messages were counted.
func (l *Lateness) Total() (n uint64) {
	for _, c := range l.Counts {
		n += c
	}
	return n
}

// Within is the least upper bound in ms below which the share of messages, 0 to 1,
// was; false when it has none, or nothing expired yet.
func (l *Lateness) Within(share float64) (millis int64, ok bool) {
	wanted, n := share*float64(l.Total()), uint64(0)
	for i, c := range l.Counts {
		if n += c; n > 0 && float64(n) >= wanted && i < len(l.UpTo) {
			return l.UpTo[i], true
		}
	}
	return 0, false
}

// Lateness returns how late messages expired. Safe for concurrent use.
func (m *Monitor) Lateness() Lateness {
	h := m.metrics.lateness
	l := Lateness{UpTo: latenessMillis[:], Counts: make([]uint64, len(h.buckets)), Millis: scheduler.Millis(h.micros.Load())}
	for i := range h.buckets {
		l.Counts[i] = h.buckets[i].Load()
	}
	return l
}
