package schedule

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/scheduler"
	"curfew/scheduler/redisstore"
)

// withRedis runs fn in a bubble with a monitor whose schedule is up.
func withRedis(t *testing.T, fn func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b, r, reg := newFakeBroker(t), newFakeRedis(), prometheus.NewRegistry()
		m, _ := start(t, Options{Primary: b.view(), Redis: r, Registerer: reg})
		time.Sleep(time.Second)
		require.Equal(t, monitor.ScheduleUp, m.Health().Schedule)
		require.Empty(t, m.Health().Reasons)
		fn(t, b, r, m, reg)
	})
}

func TestIndexFiresWhileRedisFails(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry) {
		before := b.publish(1, 10*time.Second)
		orphan := b.publish(1, time.Hour)
		time.Sleep(time.Second)
		r.Fail(errRedis)
		during := b.publish(1, 20*time.Second)
		after := b.publish(1, 2*time.Minute)
		time.Sleep(30 * time.Second)
		require.Zero(t, b.lateness(before))
		require.Zero(t, b.lateness(during))
		h := m.Health()
		require.Equal(t, monitor.ScheduleDown, h.Schedule)
		require.ErrorContains(t, errorOf(h.Reasons), "redis is away")
		require.Zero(t, gather(t, reg, "curfew_schedule_up"))
		b.ack(orphan)

		r.Heal()
		time.Sleep(15 * time.Second)
		require.Equal(t, monitor.ScheduleUp, m.Health().Schedule)
		require.Equal(t, 1.0, gather(t, reg, "curfew_schedule_up"))
		require.False(t, has(r.mem, orphan))
		require.False(t, has(r.mem, before))
		require.True(t, has(r.mem, after))
		require.Equal(t, 1.0, gather(t, reg, "curfew_reconcile_repaired_total", "kind", "missing"))
		require.Equal(t, 2.0, gather(t, reg, "curfew_reconcile_repaired_total", "kind", "orphan"))
		time.Sleep(2 * time.Minute)
		require.Zero(t, b.lateness(after))
		require.Positive(t, gather(t, reg, "curfew_deadlines_fired_total", "path", "index"))
		require.Positive(t, gather(t, reg, "curfew_deadlines_fired_total", "path", "eager"))
		require.Zero(t, gather(t, reg, "curfew_deadlines_failed_total"))
	})
}

func TestRedisAwayFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		r.Fail(errRedis)
		s := b.publish(1, time.Second)
		m, _ := start(t, Options{Primary: b.view(), Redis: r})
		time.Sleep(10 * time.Second)
		require.Zero(t, b.lateness(s))
		require.Equal(t, monitor.ScheduleDown, m.Health().Schedule)
		calls := r.Calls()
		time.Sleep(10 * time.Minute)
		require.Less(t, r.Calls()-calls, 150, "it backs off")
		require.NotEmpty(t, m.Health().Reasons)
	})
}

// TestAStartIsNoOutage: while a start brings Redis up to date, nothing has failed.
func TestAStartIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		r.Delay(time.Second)
		b.publish(1, time.Hour)
		m, _ := start(t, Options{Primary: b.view(), Redis: r})
		for m.Health().Schedule != monitor.ScheduleUp {
			require.Empty(t, m.Health().Down)
			require.Empty(t, m.Health().Reasons)
			time.Sleep(time.Second)
		}
		r.Fail(errRedis)
		time.Sleep(10 * time.Second)
		require.NotEmpty(t, m.Health().Down)
	})
}

func TestStuckRedis(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry) {
		first := b.publish(1, time.Second)
		second := b.publish(1, 1500*time.Millisecond)
		third := b.publish(1, time.Minute)
		time.Sleep(500 * time.Millisecond)
		r.Block()
		time.Sleep(time.Second)
		require.Equal(t, monitor.ScheduleUp, m.Health().Schedule, "the call that does not return has not failed yet")
		require.NotEmpty(t, m.Health().Reasons)
		require.Zero(t, gather(t, reg, "curfew_schedule_up"), "as health has it: the index fires")
		time.Sleep(4 * time.Second)
		require.Equal(t, rescueAfter.Microseconds(), b.lateness(first))
		require.Zero(t, b.lateness(second), "the schedule is not waited for again")
		require.Equal(t, monitor.ScheduleDown, m.Health().Schedule)
		require.Equal(t, 2.0, gather(t, reg, "curfew_deadlines_fired_total", "path", "index"))
		require.Zero(t, gather(t, reg, "curfew_deadlines_failed_total"), "neither was late")
		r.Heal()
		time.Sleep(time.Minute)
		require.Zero(t, b.lateness(third))
		require.Empty(t, m.Health().Reasons)
	})
}

// What Redis lost is missed in time, even if there is always something due that it did not lose.
func TestIndexIsLookedAtWhileMuchIsDue(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry) {
		lost := b.publish(1, 2*time.Second)
		for i := range 30_000 {
			b.publish(2, 1500*time.Millisecond+time.Duration(i)*100*time.Microsecond)
		}
		time.Sleep(time.Second)
		require.NoError(t, r.mem.Apply(t.Context(), nil, []deadline.Ref{lost}))
		time.Sleep(10 * time.Second)
		require.GreaterOrEqual(t, b.lateness(lost), rescueAfter.Microseconds())
		require.LessOrEqual(t, b.lateness(lost), (rescueAfter + fireEvery).Microseconds())
	})
}

func TestEmptiedRedisIsFoundByTheFirstDeadline(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry) {
		first, second := b.publish(1, 2*time.Second), b.publish(1, 10*time.Second)
		time.Sleep(time.Second)
		r.flush()
		time.Sleep(3 * time.Second)
		require.Equal(t, rescueAfter.Microseconds(), b.lateness(first))
		require.True(t, has(r.mem, second))
		require.Equal(t, monitor.ScheduleUp, m.Health().Schedule)
		require.Equal(t, 1.0, gather(t, reg, "curfew_reconcile_repaired_total", "kind", "missing"))
		time.Sleep(10 * time.Second)
		require.Zero(t, b.lateness(second))
	})
}

func TestDriftIsFoundByCounting(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry) {
		lost := b.publish(1, time.Hour)
		time.Sleep(time.Second)
		require.NoError(t, r.mem.Apply(t.Context(), nil, []deadline.Ref{lost}))
		time.Sleep(checkEvery + time.Second)
		require.True(t, has(r.mem, lost))

		stray := deadline.Ref{Deadline: b.Now() + 3_600_000_000, Queue: 9, Seq: 9}
		require.NoError(t, r.mem.Apply(t.Context(), []deadline.Ref{stray}, nil))
		time.Sleep(checkEvery + time.Second)
		require.False(t, has(r.mem, stray))
		require.Equal(t, 1.0, gather(t, reg, "curfew_reconcile_repaired_total", "kind", "missing"))
		require.Equal(t, 1.0, gather(t, reg, "curfew_reconcile_repaired_total", "kind", "orphan"))
	})
}

func TestOrphanInRedisIsHarmless(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry) {
		stray := deadline.Ref{Deadline: b.Now() + 1_000_000, Queue: 9, Seq: 9}
		require.NoError(t, r.mem.Apply(t.Context(), []deadline.Ref{stray}, nil))
		time.Sleep(3 * time.Second)
		require.False(t, has(r.mem, stray))
		require.Equal(t, 1.0, gather(t, reg, "curfew_fire_results_total", "outcome", "gone"))
	})
}

func TestLostRepliesAreHarmless(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, _ *prometheus.Registry) {
		var all []deadline.Ref
		for i := range 50 {
			all = append(all, b.publish(1, time.Duration(i)*time.Second))
		}
		for range 10 {
			r.FailAfter(errRedis)
			time.Sleep(3 * time.Second)
			r.Heal()
			time.Sleep(3 * time.Second)
		}
		time.Sleep(time.Minute)
		for _, s := range all {
			require.LessOrEqual(t, b.lateness(s), rescueAfter.Microseconds())
			require.GreaterOrEqual(t, b.lateness(s), int64(0))
		}
		n, _ := r.mem.Len(t.Context())
		require.Zero(t, n)
		require.Zero(t, m.Health().Pending)
	})
}

func TestTwoMonitorsOnOneSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		one, _ := start(t, Options{Primary: b.view(), Redis: r})
		two, stop := start(t, Options{Primary: b.view(), Redis: r})
		time.Sleep(time.Second)
		var all []deadline.Ref
		for i := range 1000 {
			all = append(all, b.publish(1, time.Duration(i)*20*time.Millisecond))
		}
		time.Sleep(10 * time.Second)
		stop()
		time.Sleep(20 * time.Second)
		for _, s := range all {
			require.LessOrEqual(t, b.lateness(s), rescueAfter.Microseconds())
			require.GreaterOrEqual(t, b.lateness(s), int64(0))
		}
		require.Zero(t, one.Health().Pending)
		require.Empty(t, one.Health().Reasons)
		_ = two
	})
}

func TestScheduleOfAnotherOwnerIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		r.owned = true
		m, _ := start(t, Options{Primary: b.view(), Redis: r})
		s := b.publish(1, time.Minute)
		time.Sleep(2 * time.Minute)
		require.Zero(t, b.lateness(s))
		require.False(t, r.wasAdded(s))
		require.ErrorContains(t, errorOf(m.Health().Reasons), redisstore.ErrOwned.Error())
	})
}

// TestDeadlinesWithoutTheirMessages: a primary that is new, where an earlier run has left deadlines in Redis, has lost its folder. What this run
// writes itself says nothing.
func TestDeadlinesWithoutTheirMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFakeRedis()
		b := newFakeBroker(t)
		m, stop := start(t, Options{Primary: b.view(), PrimaryIsNew: true, Redis: r})
		time.Sleep(time.Second)
		for range 3 {
			b.publish(1, time.Hour)
		}
		time.Sleep(time.Second)
		r.Fail(errRedis)
		time.Sleep(10 * time.Second)
		r.Heal()
		time.Sleep(time.Minute)
		require.Equal(t, monitor.ScheduleUp, m.Health().Schedule)
		require.Zero(t, m.Health().Orphans, "they are of this run")
		stop()

		b = newFakeBroker(t)
		m, _ = start(t, Options{Primary: b.view(), PrimaryIsNew: true, Redis: r})
		b.publish(1, time.Hour)
		time.Sleep(time.Minute)
		require.EqualValues(t, 3, m.Health().Orphans)
		require.Empty(t, m.Health().Reasons, "the deadlines that there are are met")
	})
}

func TestWarningsOfTheServerAreReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		r.status = scheduler.Status{SkewMillis: 1500, Warnings: []string{"maxmemory-policy is allkeys-lru"}}
		reg := prometheus.NewRegistry()
		m, _ := start(t, Options{Primary: b.view(), Redis: r, Registerer: reg})
		time.Sleep(time.Second)
		require.Equal(t, []string{"maxmemory-policy is allkeys-lru"}, m.Health().Reasons)
		require.Equal(t, 1.5, gather(t, reg, "curfew_clock_skew_seconds"))
	})
}

func TestFullBacklogBringsTheScheduleDown(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry) {
		shadows := make([]deadline.Ref, maxBacklog)
		m.redis.put(pending{remove: shadows})
		m.redis.put(pending{remove: shadows[:1]})
		require.Equal(t, monitor.ScheduleUp, m.Health().Schedule, "removals may be dropped")
		m.redis.put(pending{add: shadows[:1]})
		require.Equal(t, monitor.ScheduleDown, m.Health().Schedule)
		require.Equal(t, 2.0+maxBacklog, gather(t, reg, "curfew_shadow_writes_total", "result", "dropped"))
		time.Sleep(10 * time.Second)
		require.Equal(t, monitor.ScheduleUp, m.Health().Schedule)
	})
}
