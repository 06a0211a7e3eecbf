package monitor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

)

// TestRecentExpiriesAndPendingBefore: what is pending is counted by deadline, and what expired is listed with how late it was.
func TestRecentExpiriesAndPendingBefore(t *testing.T) {
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
		now := b.Now().UnixMilli()
		require.Equal(t, []int64{0, 3, 4}, m.PendingBefore([]int64{now, now + 60_000, now + 3_600_000}, nil))

		time.Sleep(time.Minute)
		recent := m.RecentExpiries()
		require.Len(t, recent, 2)
		require.Equal(t, RecentExpiry{At: recent[0].At, VHost: "/", Queue: "q8", Action: "dropped", Path: "eager", Count: 3}, recent[0])
		require.Equal(t, RecentExpiry{At: overdue.Deadline.UnixMilli() + 3000, VHost: "/", Queue: "q7", Action: "dropped", Path: "eager",
			Count: 1, WorstMillis: 3000, Late: true}, recent[1])

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

func TestRecentExpiriesAreBounded(t *testing.T) {
	var x counters
	for i := range 3 * recentMost {
		x.recent.add(RecentExpiry{At: int64(i) * 2000, Queue: "q", Count: 1})
	}
	m := &Monitor{counters: &x}
	require.Len(t, m.RecentExpiries(), recentMost)
	require.EqualValues(t, (3*recentMost-1)*2000, m.RecentExpiries()[0].At)
	for i := range 100 { // interleaved queues of one second
		x.recent.add(RecentExpiry{At: 10_000_000, Queue: string(rune('a' + i%2)), Count: 1})
	}
	require.EqualValues(t, 50, m.RecentExpiries()[0].Count)
	require.EqualValues(t, 50, m.RecentExpiries()[1].Count)
}

func TestLatenessOfNothing(t *testing.T) {
	var l Lateness
	_, ok := l.Within(0.99)
	require.False(t, ok)
}

// TestInstantsAreTheWallClocks: people see them, and ask by them, though the primary's own clock is ahead.
func TestInstantsAreTheWallClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		b.offset = 12 * time.Hour
		wall := func() int64 { return b.Now().Add(-b.offset).UnixMilli() }
		m, _ := start(t, Options{Primary: b.view(), Registerer: reg})
		b.publish(7, time.Minute)
		time.Sleep(time.Second)
		due := wall() + 59_000
		require.Equal(t, []int64{0, 1}, m.PendingBefore([]int64{due - 1, due}, nil))
		require.InDelta(t, float64(due)/1000, gather(t, reg, "curfew_deadline_next_timestamp_seconds"), 1e-3)
		time.Sleep(time.Minute)
		require.Len(t, m.RecentExpiries(), 1)
		require.Equal(t, due, m.RecentExpiries()[0].At)
		require.Zero(t, gather(t, reg, "curfew_deadline_next_timestamp_seconds"))

		f := &forecaster{offset: b.ClockOffset}
		require.Equal(t, wall(), f.wallMillis(b.Now()))
		require.Zero(t, f.wallMillis(0))
	})
}
