package incident

import (
	"context"
	"sync"
	"time"
)

const (
	// probeEvery is how often it is checked that this process gets a processor.
	probeEvery = 100 * time.Millisecond
	// starvedFrom is how late a check must be for the process to count as starved. Deadlines count as late from twice that on.
	starvedFrom = 250 * time.Millisecond
)

// starvation finds out whether this process gets a processor: a goroutine that sleeps for a moment should wake up then. Safe for concurrent use.
type starvation struct {
	mu    sync.Mutex
	times []starved
}

// starved is a time without a processor.
type starved struct {
	end  time.Time
	span time.Duration
}

// watch checks until ctx ends.
func (s *starvation) watch(ctx context.Context) {
	tick := time.NewTimer(probeEvery)
	defer tick.Stop()
	for last := time.Now(); ; last = time.Now() {
		tick.Reset(probeEvery)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if late := time.Since(last) - probeEvery; late >= starvedFrom {
			s.mu.Lock()
			s.times = append(s.times, starved{time.Now(), late})
			s.mu.Unlock()
		}
	}
}

// starvedFor is longer than what was late meanwhile goes on.
const starvedFor = recent + 15*time.Second

// recently is how long there was no processor in the last minute.
func (s *starvation) recently(now time.Time) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := s.times[:0]
	for _, one := range s.times {
		if now.Sub(one.end) < starvedFor {
			kept = append(kept, one)
			sum += one.span
		}
	}
	s.times = kept
	return sum
}

// losses remember counters of what must not happen. Safe for concurrent use.
type losses struct {
	mu   sync.Mutex
	last map[string]uint64
	rise map[string]rise
}

type rise struct {
	n  int
	at time.Time
}

// risesFor is how long a rise of a counter is a condition.
const risesFor = 10 * time.Minute

// rising is what was added to each counter, with no pause of risesFor.
func (l *losses) rising(list []Loss, now time.Time) map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == nil {
		l.last, l.rise = make(map[string]uint64), make(map[string]rise)
	}
	rising := make(map[string]int)
	for _, one := range list {
		r := l.rise[one.Condition]
		if now.Sub(r.at) >= risesFor {
			r.n = 0
		}
		if before, known := l.last[one.Condition]; known && one.Total > before {
			r = rise{r.n + int(one.Total-before), now}
		}
		l.last[one.Condition], l.rise[one.Condition] = one.Total, r
		if r.n > 0 {
			rising[one.Condition] = r.n
		}
	}
	return rising
}
