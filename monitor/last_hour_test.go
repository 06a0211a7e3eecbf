package monitor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLastHour: minutes leave the span, and then the ring, whether or not anything expires.
func TestLastHour(t *testing.T) {
	start := time.Unix(1000, 0)
	l := lastHour{started: start}
	minute := func(n int) time.Time { return start.Add(time.Duration(n)*time.Minute + 59*time.Second) }
	one := latenessCount{}
	one.add(0)
	count := func(at time.Time, span time.Duration) (n uint64) {
		c := l.last(at, span)
		for _, b := range c.buckets {
			n += b
		}
		return n
	}
	require.Zero(t, count(minute(0), time.Hour))
	for n := range 200 {
		l.add(minute(n), &one)
		require.EqualValues(t, min(n+1, 6), count(minute(n), 5*time.Minute), n)
		require.EqualValues(t, min(n+1, 61), count(minute(n), time.Hour), n)
	}
	require.EqualValues(t, 1, count(minute(204), 5*time.Minute))
	require.Zero(t, count(minute(205), 5*time.Minute))
	require.EqualValues(t, 1, count(minute(259), time.Hour))
	require.Zero(t, count(minute(260), time.Hour))
	require.Zero(t, testing.AllocsPerRun(100, func() { l.add(minute(300), &one) }))
}
