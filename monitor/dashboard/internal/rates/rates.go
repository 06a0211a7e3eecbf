package rates

import (
	"sync"
	"time"

	"curfew/broker/operate"
)

const (
	// sampleEvery is the least time between two samples, and sampleSpan about how far apart
	// the two samples of a rate are.
	sampleEvery = time.Second
	sampleSpan  = 10 * time.Second
	samples     = int(sampleSpan / sampleEvery)
)

// Rates computes rates from samples that are taken while a page is open. Otherwise
// it costs nothing.
type Rates struct {
	mu   sync.Mutex
	last []sample // the oldest first
}

type sample struct {
	at time.Time
	operate.Stats
}

// PerSecond is how many messages pass in a second. Known is false until there are two samples.
type PerSecond struct {
	Known                                            bool
	Published, Delivered, Acked, Expired, Unroutable float64
}

// Of takes a sample and returns how fast the totals rise.
func (x *Rates) Of(now time.Time, t operate.Stats) (r PerSecond) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for len(x.last) > 1 && now.Sub(x.last[1].at) >= sampleSpan {
		x.last = x.last[1:]
	}
	if n := len(x.last); n > 0 && now.Sub(x.last[0].at) >= sampleEvery && now.Sub(x.last[0].at) < 6*sampleSpan {
		old := x.last[0]
		a := func(now, before uint64, took time.Duration) float64 {
			return float64(now-min(before, now)) / took.Seconds()
		}
		took := now.Sub(old.at)
		r = PerSecond{true, a(t.Published, old.Published, took), a(t.Delivered, old.Delivered, took), a(t.Acked, old.Acked, took),
			a(t.Expired, old.Expired, took), a(t.Unroutable, old.Unroutable, took)}
	}
	if n := len(x.last); n == 0 || now.Sub(x.last[n-1].at) >= sampleEvery {
		x.last = append(x.last, sample{now, t})
	}
	if len(x.last) > samples+1 {
		x.last = append(x.last[:0], x.last[1:]...)
	}
	return r
}
