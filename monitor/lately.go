package monitor

import (
	"sync"
	"time"

	"curfew/scheduler"
)

// lately is how late messages expired in each minute of the last hour. Safe for concurrent
// use. A minute that is over gives its place to the one an hour later.
type lately struct {
	started time.Time

	mu      sync.Mutex
	minutes [61]latenessMinute // by number modulo their count
}

type latenessMinute struct {
	number int64 // of the minute since started, from 1; 0: none yet
	latenessCount
}

func (l *lately) number(at time.Time) int64 { return int64(at.Sub(l.started)/time.Minute) + 1 }

func (l *lately) add(at time.Time, c *latenessCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	number := l.number(at)
	m := &l.minutes[number%int64(len(l.minutes))]
	if m.number != number {
		*m = latenessMinute{number: number}
	}
	m.addAll(c)
}

// last adds up the minute of that instant and those before it within the span.
func (l *lately) last(at time.Time, within time.Duration) (sum latenessCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	number := l.number(at)
	for i := range l.minutes {
		m := &l.minutes[i]
		if m.number > 0 && m.number <= number && number-m.number <= int64(within/time.Minute) {
			sum.addAll(&m.latenessCount)
		}
	}
	return sum
}

// LatenessWithin returns how late those messages were that expired within the last minutes,
// up to an hour; it may reach back a minute more. Safe for concurrent use.
func (m *Monitor) LatenessWithin(span time.Duration) Lateness {
	c := m.metrics.lateness.lately.last(time.Now(), span)
	return Lateness{UpTo: latenessMillis[:], Counts: c.buckets[:], Millis: scheduler.Millis(c.micros)}
}
