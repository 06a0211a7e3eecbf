package schedule

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/monitor/incident"
)

// events are what a monitor has recorded. Safe for concurrent use.
type events struct {
	mu  sync.Mutex
	all []incident.Event
}

func (e *events) record(one incident.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
}

// counts are the messages by what happened and queue.
func (e *events) counts() map[string]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	sums := make(map[string]int64)
	for _, one := range e.all {
		what := map[incident.Kind]string{incident.Expired: "expired", incident.ExpiredLate: "late"}[one.Kind]
		sums[what+" "+one.Queue] += one.Count
	}
	return sums
}

// TestIntendedExpiriesAreNotMissed: what expires because it was there for that is counted, and told when it was late.
func TestIntendedExpiriesAreNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told events
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		v := b.view()
		start(t, Options{Primary: v, Registerer: reg, Record: told.record})
		at := deadline.At(time.Now())
		expire := func(intended bool, action deadline.Action, late time.Duration) deadline.Expiry {
			return deadline.Expiry{Ref: deadline.Ref{Deadline: at, Queue: 7}, VHost: "/", Queue: "q7", Path: deadline.Eager, Action: action,
				Arrived: at.Add(late), Intended: intended}
		}
		v.Expiries().Publish([]deadline.Expiry{
			expire(true, deadline.DeadLettered, time.Millisecond),
			expire(false, deadline.DeadLettered, time.Millisecond),
			expire(true, deadline.DeadLettered, time.Millisecond),
			expire(true, deadline.DeadLettered, time.Minute),
			expire(true, deadline.Parked, time.Millisecond),
		})
		time.Sleep(time.Minute)
		require.Equal(t, map[string]int64{"expired q7": 1, "late q7": 1}, told.counts())
		require.Equal(t, 4.0, gather(t, reg, "curfew_deadlines_fired_total", "vhost", "/", "queue", "q7", "action", "dead_lettered", "path", "eager"))
	})
}

// What a consumer held past its deadline and gave back is late by its doing.
func TestConsumersLatenessIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(t)
		var told events
		reg := prometheus.NewRegistry()
		start(t, Options{Primary: b.view(), Record: told.record, Registerer: reg})
		held := b.publish(7, time.Second)
		b.hold(held)
		time.Sleep(time.Minute)
		b.requeue(held)
		time.Sleep(2 * time.Second)
		require.Equal(t, int64(59_000_000), b.lateness(held))
		require.Equal(t, 1.0, gather(t, reg, "curfew_deadlines_fired_total", "path", "requeue"))
		require.Zero(t, gather(t, reg, "curfew_deadline_lateness_seconds"))
		require.Zero(t, gather(t, reg, "curfew_deadlines_failed_total"))
		require.Equal(t, map[string]int64{"expired q7": 1}, told.counts())
	})
}

// TestHeldPastDeadlines: what consumers hold past its deadline is asked about again and again, which is not the next deadline.
func TestHeldPastDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		start(t, Options{Primary: b.view(), Registerer: reg})
		held := func() float64 { return gather(t, reg, "curfew_fire_results_total", "outcome", "held") }
		first, second := b.publish(7, 10*time.Second), b.publish(7, 20*time.Second)
		b.hold(first)
		b.hold(second)
		time.Sleep(9 * time.Second)
		require.Zero(t, held(), "before their deadlines")
		time.Sleep(12 * time.Second)
		require.Equal(t, 2.0, held())
		time.Sleep(askedAfter)
		require.Equal(t, 4.0, held())
		next := func() float64 { return gather(t, reg, "curfew_deadline_next_timestamp_seconds") }
		require.Zero(t, next(), "looking at them again is not a deadline")
		third := b.publish(7, time.Hour)
		time.Sleep(time.Second)
		require.Equal(t, float64(third.Deadline)/1e6, next())
		b.ack(third)
	})
}

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
		require.Equal(t, monitor.RecentExpiry{At: recent[0].At, VHost: "/", Queue: "q8", Action: "dropped", Path: "eager", Count: 3}, recent[0])
		require.Equal(t, monitor.RecentExpiry{At: overdue.Deadline.UnixMilli() + 3000, VHost: "/", Queue: "q7", Action: "dropped", Path: "eager",
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
	})
}
