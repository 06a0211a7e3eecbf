package incident

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"
)

const (
	// probeEvery is how often it is checked that this process gets a processor. Each check wakes up an idle process, which is most of what
	// that costs.
	probeEvery = 250 * time.Millisecond
	// starvedFrom is how late a check must be for the process to count as starved. Deadlines count as late from twice that on: whatever makes
	// one late lasts for so long after a check.
	starvedFrom = 250 * time.Millisecond
)

// probe is a goroutine that sleeps for a moment, and should wake up then. Its zero value is ready. Safe for concurrent use.
type probe struct {
	rests atomic.Bool // one check a second is enough: no deadline waits that could be late
	mu    sync.Mutex
	times []starved
}

// starved is a time without a processor.
type starved struct {
	end  time.Time
	span time.Duration
}

// watch checks until ctx ends.
func (s *probe) watch(ctx context.Context) {
	tick := time.NewTimer(probeEvery)
	defer tick.Stop()
	for {
		last, wait := time.Now(), probeEvery
		if s.rests.Load() {
			wait = deadline.UntilSecond(last)
		}
		tick.Reset(wait)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if late := time.Since(last) - wait; late >= starvedFrom {
			s.mu.Lock()
			s.times = append(s.times, starved{time.Now(), late})
			s.mu.Unlock()
		}
	}
}

// within is how long there was no processor in the span before now. What is older is forgotten, so the span is always the same.
func (s *probe) within(span time.Duration, now time.Time) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.times[:0]
	for _, one := range s.times {
		if now.Sub(one.end) < span {
			kept = append(kept, one)
			sum += one.span
		}
	}
	s.times = kept
	return sum
}
