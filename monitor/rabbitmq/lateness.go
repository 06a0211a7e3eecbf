package rabbitmq

import (
	"math"
	"sync"
	"time"
)

// latenessMillis are the upper bounds of the buckets: those of the monitor's histogram, and finer ones below 100 ms.
var latenessMillis = [...]float64{1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000}

// lateness counts how late messages were given back. The last bucket has no upper bound. It is safe for concurrent use;
// the zero value is empty.
type lateness struct {
	mu      sync.Mutex
	buckets [len(latenessMillis) + 1]uint64
	total   uint64
	sum     time.Duration
}

func (l *lateness) add(late time.Duration) {
	i := 0
	for i < len(latenessMillis) && float64(late) > latenessMillis[i]*float64(time.Millisecond) {
		i++
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buckets[i]++
	l.total++
	l.sum += late
}

// within returns the lowest upper bound, in ms, that this share of the messages did not exceed; nil: there is none.
func (l *lateness) within(share float64) *float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.total == 0 {
		return nil
	}
	wanted, n := uint64(math.Ceil(share*float64(l.total))), uint64(0)
	for i, bound := range latenessMillis {
		if n += l.buckets[i]; n >= wanted {
			return &bound
		}
	}
	return nil
}

// addTo adds all counts to sum.
func (l *lateness) addTo(sum *lateness) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, n := range l.buckets {
		sum.buckets[i] += n
	}
	sum.total += l.total
	sum.sum += l.sum
}
