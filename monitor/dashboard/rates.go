package dashboard

import (
	"sync"
	"time"
)

const (
	// sampleEvery is how old a sample must be for the next, and sampleSpan how far apart
	// the two are, about, that a rate is of.
	sampleEvery = time.Second
	sampleSpan  = 10 * time.Second
	samples     = int(sampleSpan / sampleEvery)
)

// rates are what was counted a second, by samples that are taken when somebody looks:
// nobody looking costs nothing.
type rates struct {
	mu   sync.Mutex
	last []sample // the oldest first
}

type sample struct {
	at time.Time
	Totals
}

// Rates are messages a second. Known is false until there are two samples.
type Rates struct {
	Known                                            bool
	Published, Delivered, Acked, Expired, Unroutable float64
}

// of takes a sample and says how fast the totals rise.
func (x *rates) of(now time.Time, t Totals) (r Rates) {
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
		r = Rates{true, a(t.Published, old.Published, took), a(t.Delivered, old.Delivered, took), a(t.Acked, old.Acked, took),
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
