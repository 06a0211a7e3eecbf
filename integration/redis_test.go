package integration

import (
	"strings"
	"testing"
	"time"

	"curfew/scheduler/storetest"
)

const (
	pauseFor       = 2 * time.Second
	noticeLimit    = 5 * time.Second
	recoverLimit   = 30 * time.Second
	degradedWithin = 500 * time.Millisecond // of its deadline, while Redis fails: 250 ms until the index takes over, and the rest to notice
)

// TestDeadlinesWithRedis is TestDeadlines with the schedule in a Redis sorted set.
func TestDeadlinesWithRedis(t *testing.T) {
	redis := storetest.StartRedis(t)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			broker := startCurfew(t, "REDIS_URL="+redis.URL, "INSTANCE="+c.name)
			eventually(t, recoverLimit, "the schedule in Redis", func() bool { return broker.metric("curfew_schedule_up") == 1 })
			deadlineRuns(t, c.make(t), broker)
		})
	}
}

// TestRedisFails: Redis goes wrong in the middle of such a run. Every message is dead-lettered all the same, none early, the hour-long one
// stays; health says so meanwhile and recovers; what Redis had lost is counted.
func TestRedisFails(t *testing.T) {
	for _, f := range []struct {
		name   string
		fault  func(*testing.T, *storetest.Redis) *fault
		drifts bool // the schedule in Redis lacks deadlines afterwards, until it is rebuilt
	}{
		{"killed", killed, true},
		{"flushed", flushed, true},
		{"paused", paused, false},
	} {
		t.Run(f.name, func(t *testing.T) {
			redis := storetest.StartRedis(t)
			broker := startCurfew(t, "REDIS_URL="+redis.URL)
			eventually(t, recoverLimit, "the schedule in Redis", func() bool { return broker.metric("curfew_schedule_up") == 1 })
			driftBefore := broker.metric("curfew_drift_total")

			failing := f.fault(t, redis)
			lateness := deadlineRun(t, goClient{}, broker, "orders", &fault{
				strike: func() { failing.strike(); noticed(t, broker) },
				heal:   failing.heal,
			})

			p99 := quantile(lateness, lateQuantile)
			t.Logf("lateness p50 %v, p99 %v, max %v", quantile(lateness, 0.5), p99, lateness[len(lateness)-1])
			if p99 > degradedWithin {
				t.Errorf("p99 is over %v", degradedWithin)
			}
			eventually(t, recoverLimit, "health to be ok again", func() bool { return broker.healthy() && broker.metric("curfew_schedule_up") == 1 })
			if drift := broker.metric("curfew_drift_total") - driftBefore; f.drifts && drift == 0 {
				t.Error("no drift was counted")
			}
			inRedis(t, redis, broker)
		})
	}
}

// killed: away while the second half is published, then back, empty.
func killed(_ *testing.T, redis *storetest.Redis) *fault {
	return &fault{strike: redis.Kill, heal: redis.Restart}
}

// flushed: emptied by somebody else.
func flushed(_ *testing.T, redis *storetest.Redis) *fault {
	return &fault{strike: func() { redis.Do("FLUSHALL") }, heal: func() {}}
}

// paused: stopped with its connections open, and then back with all it had.
func paused(_ *testing.T, redis *storetest.Redis) *fault {
	var over <-chan time.Time
	return &fault{
		strike: func() { redis.Pause(); over = time.After(pauseFor) },
		heal:   func() { <-over; redis.Resume() },
	}
}

// noticed waits for health to say degraded, with a reason that names Redis.
func noticed(t *testing.T, broker *curfew) {
	t.Helper()
	eventually(t, noticeLimit, "health to be degraded", broker.degraded)
}

// inRedis looks for the hour-long message's shadow, the one left of the run.
func inRedis(t *testing.T, redis *storetest.Redis, broker *curfew) {
	t.Helper()
	eventually(t, recoverLimit, "the one pending deadline in Redis", func() bool {
		var members int64
		keys, err := redis.Client.Keys(t.Context(), "*").Result()
		check(t, err)
		for _, key := range keys {
			if kind, _ := redis.Client.Type(t.Context(), key).Result(); kind == "zset" && strings.Contains(key, "curfew") {
				n, err := redis.Client.ZCard(t.Context(), key).Result()
				check(t, err)
				members += n
			}
		}
		return members == 1 && broker.metric("curfew_deadlines_pending") == 1
	})
}
