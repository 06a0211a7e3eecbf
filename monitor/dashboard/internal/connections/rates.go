package connections

import (
	"sync"
	"time"
)

// counts are the counters of a connection or channel since it was opened.
type counts struct{ published, delivered, acked uint64 }

// perSecond are changes of counts.
type perSecond struct {
	published, delivered, acked float64
	known                       bool
}

// sampler keeps earlier counts, so that pages can show rates: those of the last two looks only.
type sampler struct {
	mu       sync.Mutex
	at, was  time.Time
	now, old map[any]counts
}

// sampleEvery is the least time between two looks.
const sampleEvery = time.Second

// look takes the present counts, by identity, and returns a function with the rates.
func (s *sampler) look(now time.Time, present map[any]counts) func(identity any) perSecond {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.at) >= sampleEvery {
		s.was, s.old, s.at, s.now = s.at, s.now, now, present
	}
	old, seconds := s.old, now.Sub(s.was).Seconds()
	return func(identity any) perSecond {
		from, known := old[identity]
		if !known || seconds <= 0 {
			return perSecond{}
		}
		to := present[identity]
		rate := func(to, from uint64) float64 { return float64(to-from) / seconds }
		return perSecond{rate(to.published, from.published), rate(to.delivered, from.delivered), rate(to.acked, from.acked), true}
	}
}
