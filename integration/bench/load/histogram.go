package load

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets whose width is 1/64 of a power of two: 1.6%. The
// zero value is empty. It is not safe for concurrent use.
type Histogram struct {
	count   uint64
	max     time.Duration
	buckets [64 * 40]uint64
}

const fineBits = 6

// Record counts one duration; a negative one counts as 0.
func (h *Histogram) Record(d time.Duration) { h.recordMany(d, 1) }

// recordMany counts a duration n times.
func (h *Histogram) recordMany(d time.Duration, n uint64) {
	d = max(d, 0)
	h.count += n
	h.max = max(h.max, d)
	h.buckets[bucket(uint64(d))] += n
}

func bucket(v uint64) int {
	if v < 1<<fineBits {
		return int(v)
	}
	shift := bits.Len64(v) - fineBits - 1
	return min((shift+1)<<fineBits+int(v>>shift)-1<<fineBits, 64*40-1)
}

// bottom returns the least value of a bucket.
func bottom(at int) uint64 {
	if at < 1<<fineBits {
		return uint64(at)
	}
	shift := at>>fineBits - 1
	return uint64(1<<fineBits+at&(1<<fineBits-1)) << shift
}

// Merge adds what another histogram has counted.
func (h *Histogram) Merge(other *Histogram) {
	h.count += other.count
	h.max = max(h.max, other.max)
	for i, n := range other.buckets {
		h.buckets[i] += n
	}
}

// quantile returns the value that a share q of the durations do not exceed, to the width of
// a bucket; 0 if there are none.
func (h *Histogram) quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.count))
	for i, n := range h.buckets {
		if rank < n {
			return min(time.Duration(bottom(i+1)-1), h.max)
		}
		rank -= n
	}
	return h.max
}

// Summary summarizes a histogram, in microseconds.
type Summary struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50us"`
	P99   float64 `json:"p99us"`
	P999  float64 `json:"p999us"`
	Max   float64 `json:"maxus"`
}

// Summary returns the summary of the histogram, or nil if it is empty.
func (h *Histogram) Summary() *Summary {
	if h.count == 0 {
		return nil
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	return &Summary{Count: h.count, P50: us(h.quantile(0.5)), P99: us(h.quantile(0.99)), P999: us(h.quantile(0.999)), Max: us(h.max)}
}
