package monitor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/scheduler"
)

// TestMissedAndAhead: what is ahead is counted by deadline, and what expired is listed with how late it was.
func TestMissedAndAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(t)
		overdue := b.publish(7, time.Second)
		time.Sleep(4 * time.Second)
		m, _ := start(t, Options{Primary: b.view()})
		for range 3 {
			b.publish(8, time.Minute)
		}
		b.publish(8, time.Hour)
		time.Sleep(time.Second)
		now := b.Now() / 1000
		require.Equal(t, []int64{0, 3, 4}, m.Ahead([]int64{now, now + 60_000, now + 3_600_000}, nil))

		time.Sleep(time.Minute)
		missed := m.Missed()
		require.Len(t, missed, 2)
		require.Equal(t, Miss{At: missed[0].At, VHost: "/", Queue: "q8", Action: "dropped", Path: "eager", Count: 3}, missed[0])
		require.Equal(t, Miss{At: overdue.Deadline/1000 + 3000, VHost: "/", Queue: "q7", Action: "dropped", Path: "eager",
			Count: 1, WorstMillis: 3000, Late: true}, missed[1])

		l := m.Lateness()
		require.EqualValues(t, 4, l.Total())
		require.EqualValues(t, 3000, l.Millis)
		within, ok := l.Within(0.5)
		require.True(t, ok)
		require.EqualValues(t, 1, within)
		within, ok = l.Within(0.99)
		require.True(t, ok)
		require.EqualValues(t, 5000, within)
	})
}

func TestMissedIsBounded(t *testing.T) {
	var x books
	for i := range 3 * recentMost {
		x.recent.add(Miss{At: int64(i) * 2000, Queue: "q", Count: 1})
	}
	m := &Monitor{books: &x}
	require.Len(t, m.Missed(), recentMost)
	require.EqualValues(t, (3*recentMost-1)*2000, m.Missed()[0].At)
	for i := range 100 { // interleaved queues of one second
		x.recent.add(Miss{At: 10_000_000, Queue: string(rune('a' + i%2)), Count: 1})
	}
	require.EqualValues(t, 50, m.Missed()[0].Count)
	require.EqualValues(t, 50, m.Missed()[1].Count)
}

func TestLatenessOfNothing(t *testing.T) {
	var l Lateness
	_, ok := l.Within(0.99)
	require.False(t, ok)
}

// TestInstantsAreTheWallClocks: people are told them, and ask by them, though the primary's own clock is ahead.
func TestInstantsAreTheWallClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		b.offset = 12 * time.Hour
		wall := func() int64 { return b.Now()/1000 - b.offset.Milliseconds() }
		m, _ := start(t, Options{Primary: b.view(), Registerer: reg})
		b.publish(7, time.Minute)
		time.Sleep(time.Second)
		due := wall() + 59_000
		require.Equal(t, []int64{0, 1}, m.Ahead([]int64{due - 1, due}, nil))
		require.InDelta(t, float64(due)/1000, gather(t, reg, "curfew_deadline_next_timestamp_seconds"), 1e-3)
		time.Sleep(time.Minute)
		require.Len(t, m.Missed(), 1)
		require.Equal(t, due, m.Missed()[0].At)
		require.Zero(t, gather(t, reg, "curfew_deadline_next_timestamp_seconds"))

		l := m.newLedger()
		l.hold(scheduler.Shadow{Queue: 7, Deadline: b.Now()}, b.Now())
		require.Equal(t, wall(), l.held.FirstDeadlineAt)
		f := &forecaster{offset: b.ClockOffset}
		require.Equal(t, wall(), f.shown(b.Now()))
		require.Zero(t, f.shown(0))
	})
}
