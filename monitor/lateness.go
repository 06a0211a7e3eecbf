package monitor

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"curfew/broker/deadline"
)

// latenessMillis are the upper bounds of the histogram's buckets.
var latenessMillis = [...]int64{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000}

// latenessCount collects latenesses before they reach the histogram. The last bucket has no
// upper bound.
type latenessCount struct {
	buckets [len(latenessMillis) + 1]uint64
	micros  int64 // the sum; a Duration could overflow
}

func (c *latenessCount) add(lateness time.Duration) {
	i, _ := slices.BinarySearch(latenessMillis[:], int64(deadline.RoundUp(lateness)))
	c.buckets[i]++
	c.micros += lateness.Microseconds()
}

// lateness is c as others see it.
func (c *latenessCount) lateness() Lateness {
	return Lateness{UpTo: latenessMillis[:], Counts: c.buckets[:], Millis: (c.micros + 999) / 1000}
}

func (c *latenessCount) addAll(o *latenessCount) {
	for i, n := range o.buckets {
		c.buckets[i] += n
	}
	c.micros += o.micros
}

// latenessHistogram is a Prometheus histogram that takes a batch at a time: one
// Observe per message would cost more than firing it.
type latenessHistogram struct{ lastHour lastHour }

var latenessDesc = prometheus.NewDesc("curfew_deadline_lateness_seconds",
	"How long after its deadline an expired message left its queue. Messages that a consumer held past their deadlines are not counted.", nil, nil)

// Describe implements prometheus.Collector.
func (h *latenessHistogram) Describe(out chan<- *prometheus.Desc) { out <- latenessDesc }

// Collect implements prometheus.Collector.
func (h *latenessHistogram) Collect(out chan<- prometheus.Metric) {
	cumulative := make(map[float64]uint64, len(latenessMillis))
	total, count := h.lastHour.sum(), uint64(0)
	for i, n := range total.buckets {
		count += n
		if i < len(latenessMillis) {
			cumulative[float64(latenessMillis[i])/1000] = count
		}
	}
	out <- prometheus.MustNewConstHistogram(latenessDesc, count, float64(total.micros)/1e6, cumulative)
}

// Lateness is how late messages expired, since the monitor was made.
type Lateness struct {
	// UpTo are the upper bounds of the buckets in ms. Counts has one more, for messages that
	// were later than all of them.
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

// Within returns the least bound in ms that the share of messages, 0 to 1, did not exceed;
// false if there is none, or nothing has expired yet.
func (l *Lateness) Within(share float64) (millis int64, ok bool) {
	wanted, n := share*float64(l.Total()), uint64(0)
	for i, c := range l.Counts {
		if n += c; n > 0 && float64(n) >= wanted && i < len(l.UpTo) {
			return l.UpTo[i], true
		}
	}
	return 0, false
}

// Share is how many of the messages were late, 0 to 1; 0 if there were none.
func (l *Lateness) Share() float64 {
	late := uint64(0)
	for i, c := range l.Counts {
		if l.IsLate(i) {
			late += c
		}
	}
	return float64(late) / float64(max(l.Total(), 1))
}

// IsLate reports whether the messages of a bucket were late, by deadline.LateAfter.
func (l *Lateness) IsLate(bucket int) bool {
	return bucket > 0 && l.UpTo[bucket-1] >= deadline.LateAfter.Milliseconds()
}

// Lateness returns how late messages expired. Safe for concurrent use.
func (m *Monitor) Lateness() Lateness {
	total := m.metrics.lateness.lastHour.sum()
	return total.lateness()
}
