package monitor

import (
	"sync"
	"time"
)

// lastHour holds how late messages expired, in all and for each minute of the last hour. Safe for
// concurrent use. A minute's place is reused an hour later.
type lastHour struct {
	started time.Time

	mu      sync.Mutex
	total   latenessCount
	minutes [61]latenessMinute // by number modulo their count
}

type latenessMinute struct {
	number int64 // of the minute since started, from 1; 0: none yet
	latenessCount
}

func (l *lastHour) number(at time.Time) int64 { return int64(at.Sub(l.started)/time.Minute) + 1 }

func (l *lastHour) add(at time.Time, c *latenessCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	number := l.number(at)
	m := &l.minutes[number%int64(len(l.minutes))]
	if m.number != number {
		*m = latenessMinute{number: number}
	}
	m.addAll(c)
	l.total.addAll(c)
}

// sum is what was added since the start.
func (l *lastHour) sum() latenessCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total
}

// last adds up the minute of an instant and the minutes before it that are within a span.
func (l *lastHour) last(at time.Time, within time.Duration) (sum latenessCount) {
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

// LatenessWithin returns how late the messages were that expired within the last span, of an hour
// at most; it may include a minute more. Safe for concurrent use.
func (m *Monitor) LatenessWithin(span time.Duration) Lateness {
	c := m.metrics.lateness.lastHour.last(time.Now(), span)
	return c.lateness()
}
