package schedule

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/scheduler"
)

// schedules are the two ways to run a monitor.
var schedules = []string{"embedded", "redis"}

// eachSchedule runs fn in a bubble of virtual time, without Redis (nil) and with.
func eachSchedule(t *testing.T, fn func(t *testing.T, r *fakeRedis, o Options)) {
	for _, name := range schedules {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if name == "embedded" {
					fn(t, nil, Options{})
					return
				}
				r := newFakeRedis()
				fn(t, r, Options{Redis: r})
			})
		})
	}
}

func TestEveryDeadlineFiresOnceAndOnTime(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		o.Primary = b.view()
		_, stop := start(t, o)
		random := rand.New(rand.NewPCG(1, 2))
		var all []deadline.Ref
		for range 400 {
			all = append(all, b.publish(1+random.Uint64N(5), time.Duration(random.Int64N(int64(time.Hour)))))
			all = append(all, b.publish(1+random.Uint64N(5), time.Duration(random.Int64N(int64(300*time.Millisecond)))))
			time.Sleep(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
		}
		time.Sleep(time.Hour)
		punctual := 0
		for _, s := range all {
			require.GreaterOrEqual(t, b.lateness(s), int64(0), "%v", s)
			require.LessOrEqual(t, b.lateness(s), fireEvery.Microseconds(), "%v", s)
			if b.lateness(s) == 0 {
				punctual++
			}
		}
		require.Greater(t, punctual, len(all)*9/10, "all but those right after another")
		require.Equal(t, len(all), b.stats().asked, "each is asked about once")
		stop()
	})
}

// Deadlines close to one another share a wake-up, and none is early or later than
// the time between two.
func TestCloseDeadlinesFireTogether(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		o.Primary = b.view()
		start(t, o)
		var all []deadline.Ref
		for i := range 1000 {
			all = append(all, b.publish(1, time.Minute+time.Duration(i)*10*time.Microsecond))
		}
		time.Sleep(2 * time.Minute)
		for _, s := range all {
			require.GreaterOrEqual(t, b.lateness(s), int64(0))
			require.LessOrEqual(t, b.lateness(s), fireEvery.Microseconds())
		}
		require.LessOrEqual(t, b.stats().calls, 45, "10 ms, every 250 µs")
		require.Equal(t, len(all), b.stats().asked)
	})
}

func TestStartWithOverdueMessages(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		overdue, ahead := b.publish(1, time.Second), b.publish(1, time.Hour)
		time.Sleep(time.Minute)
		o.Primary = b.view()
		start(t, o)
		time.Sleep(time.Millisecond)
		require.Equal(t, int64(59_000_000), b.lateness(overdue))
		time.Sleep(time.Hour)
		require.Zero(t, b.lateness(ahead))
	})
}

func TestSettledInTheWindowLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		m, _ := start(t, Options{Primary: b.view(), Redis: r})
		time.Sleep(time.Second)
		soon, late := b.publish(1, time.Minute), b.publish(1, time.Minute)
		time.Sleep(10 * time.Millisecond)
		b.ack(soon)
		time.Sleep(time.Second)
		require.False(t, r.wasAdded(soon))
		require.False(t, has(m.index, soon))
		require.True(t, r.wasAdded(late))
		require.True(t, has(m.index, late))
		b.ack(late)
		time.Sleep(time.Second)
		require.False(t, has(r.mem, late))
		require.Zero(t, m.Health().Pending)
	})
}

func TestNoWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		start(t, Options{Primary: b.view(), Redis: r, WriteWindow: -1})
		time.Sleep(time.Second)
		s := b.publish(1, time.Minute)
		time.Sleep(2 * flushEvery)
		require.True(t, r.wasAdded(s))
	})
}

// TestNoWindowWritesEachShadow: those too that have left their queue when the monitor hears of them, or are due before
// Redis would say so. None stays behind.
func TestNoWindowWritesEachShadow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		m, _ := start(t, Options{Primary: b.view(), Redis: r, WriteWindow: -1})
		time.Sleep(time.Second)
		stays := b.publish(1, time.Minute)
		passing := b.publish(1, time.Minute)
		b.ack(passing)
		near := b.publish(1, 50*time.Millisecond)
		time.Sleep(time.Second)
		require.Zero(t, b.lateness(near))
		for _, s := range []deadline.Ref{stays, passing, near} {
			require.True(t, r.wasAdded(s))
			require.Equal(t, s == stays, has(r.mem, s))
		}
		require.EqualValues(t, 1, m.Health().Pending)
	})
}

func TestShortDeadlinesDoNotPassThroughRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newFakeBroker(t), newFakeRedis()
		start(t, Options{Primary: b.view(), Redis: r})
		time.Sleep(time.Second)
		s := b.publish(1, 50*time.Millisecond)
		time.Sleep(time.Second)
		require.Zero(t, b.lateness(s))
		require.False(t, r.wasAdded(s))
	})
}

func TestHeldMessageExpiresAtRequeue(t *testing.T) {
	eachSchedule(t, func(t *testing.T, r *fakeRedis, o Options) {
		b := newFakeBroker(t)
		o.Primary = b.view()
		m, _ := start(t, o)
		acked, requeued := b.publish(1, time.Second), b.publish(1, time.Second)
		b.hold(acked)
		b.hold(requeued)
		time.Sleep(70 * time.Second)
		require.Equal(t, -1, int(b.lateness(acked)))
		require.LessOrEqual(t, b.stats().calls, 2*4, "looked at again every 30 s, not all the time")
		b.ack(acked)
		b.requeue(requeued)
		time.Sleep(time.Second)
		require.Zero(t, m.Health().Pending)
		if r != nil {
			require.False(t, has(r.mem, acked))
			require.False(t, has(r.mem, requeued))
		}
	})
}

func TestNotDueWaitsForThePrimary(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		b.slow = 7
		o.Primary = b.view()
		start(t, o)
		s := b.publish(1, time.Minute)
		time.Sleep(2 * time.Minute)
		require.Equal(t, fireEvery.Microseconds(), b.lateness(s), "not asked all the time")
		require.Equal(t, 2, b.stats().calls)
	})
}

func TestLostEventsAreMadeUpFor(t *testing.T) {
	eachSchedule(t, func(t *testing.T, r *fakeRedis, o Options) {
		b := newFakeBroker(t)
		v := b.view()
		o.Primary = v
		m, _ := start(t, o)
		time.Sleep(time.Second)
		settled := b.publish(1, time.Hour)
		time.Sleep(time.Second)
		require.True(t, has(m.index, settled))

		b.do(func() { v.limit = 0 })
		b.ack(settled)
		missed := b.publish(1, time.Minute)
		time.Sleep(time.Millisecond)
		b.do(func() { v.limit = 1 << 20 })
		time.Sleep(5 * time.Second)
		require.False(t, has(m.index, settled), "an orphan")
		require.True(t, has(m.index, missed))
		if r != nil {
			require.False(t, has(r.mem, settled))
			require.True(t, has(r.mem, missed))
		}
		time.Sleep(time.Minute)
		require.Zero(t, b.lateness(missed))
	})
}

func TestStormFiresInBoundedBatchesInOrder(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		o.Primary = b.view()
		start(t, o)
		time.Sleep(time.Second)
		const n = 5 * fireBatch
		b.do(func() {
			for i := range n {
				b.enqueue(deadline.Ref{Deadline: b.Now() + 5_000_000 + deadline.Instant(i/100)*1000, Queue: 1})
			}
		})
		time.Sleep(time.Minute)
		require.Zero(t, b.queued())
		require.LessOrEqual(t, b.stats().largest, fireBatch)
		for _, s := range b.order {
			require.Less(t, b.lateness(s), rescueAfter.Microseconds())
		}
		require.Equal(t, b.order, b.expired)
	})
}

func TestPanickingLoopIsStartedAgain(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		b.failures = 2
		o.Primary = b.view()
		start(t, o)
		first, second := b.publish(1, time.Second), b.publish(1, time.Minute)
		time.Sleep(2 * time.Minute)
		require.Positive(t, b.lateness(first))
		require.Zero(t, b.lateness(second))
	})
}

func TestWhatALoopHeldIsMadeUpFor(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		v := b.view()
		o.Primary = v
		m, _ := start(t, o)
		time.Sleep(time.Second)
		b.do(func() { v.panics = 1 })
		first := b.publish(1, time.Minute) // in the window when ingest panics
		time.Sleep(3 * time.Second)
		b.do(func() { v.broken = 1 })
		second := b.publish(1, time.Minute)
		time.Sleep(2 * time.Minute)
		require.Zero(t, b.lateness(first))
		require.Zero(t, b.lateness(second))
		require.Empty(t, m.Health().Reasons)
	})
}

func TestDeadlinesBeyondTheCalendarAreLeftAlone(t *testing.T) {
	eachSchedule(t, func(t *testing.T, _ *fakeRedis, o Options) {
		b := newFakeBroker(t)
		b.do(func() { b.enqueue(deadline.Ref{Deadline: scheduler.MaxDeadline + 1, Queue: 1}) })
		o.Primary = b.view()
		m, _ := start(t, o)
		b.do(func() { b.enqueue(deadline.Ref{Deadline: scheduler.MaxDeadline + 1, Queue: 1}) })
		s := b.publish(1, time.Minute)
		time.Sleep(time.Hour)
		require.Zero(t, b.lateness(s))
		require.Zero(t, m.Health().Pending)
	})
}

func TestEventsAreRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told events
		b, r := newFakeBroker(t), newFakeRedis()
		b.action = deadline.Parked
		b.publish(1, time.Second)
		time.Sleep(10 * time.Second)
		r.Fail(errors.New("redisstore: check: INFO: dial tcp 127.0.0.1:6379: connect: connection refused"))
		m, _ := start(t, Options{Primary: b.view(), Redis: r, Record: told.record})
		b.publish(2, time.Second)
		b.publish(2, time.Second)
		time.Sleep(10 * time.Second)
		require.Contains(t, m.Health().Down, "redis schedule down: nothing listens on 127.0.0.1:6379")
		require.Equal(t, m.Health().Down, m.Health().Reasons[0])
		r.Heal()
		time.Sleep(30 * time.Second)
		require.Empty(t, m.Health().Down)
		require.Equal(t, map[string]int64{"expired q1": 1, "expired q2": 2, "late q1": 1}, told.counts())
	})
}

func TestHungLoopShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(t)
		m, _ := start(t, Options{Primary: b.view()})
		b.publish(1, time.Second)
		time.Sleep(500 * time.Millisecond)
		require.Empty(t, m.Health().Reasons)
		hang := make(chan struct{})
		b.do(func() { b.hang = hang })
		time.Sleep(7 * time.Second)
		h := m.Health()
		require.Len(t, h.Reasons, 1)
		require.Contains(t, h.Reasons[0], "loop fire silent")
		require.Equal(t, []string{"fire"}, h.Stalled)
		require.Less(t, h.LastTick, time.Now().Add(-5*time.Second))
		close(hang)
		time.Sleep(time.Second)
		require.Empty(t, m.Health().Reasons)
	})
}

func TestOptionsAreChecked(t *testing.T) {
	_, err := New(Options{})
	require.ErrorContains(t, err, "Primary")
}
