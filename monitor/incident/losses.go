package incident

import (
	"sync"
	"time"
)

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
