package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/integration/testenv"
)

const (
	outageFor      = 2 * time.Second
	noticeLimit    = 2 * time.Minute
	recoverLimit   = 2 * time.Minute
	degradedWithin = 500 * time.Millisecond // of its deadline, while Redis fails: 250 ms until the index takes over, and the rest to notice
)

// TestDeadlinesWithRedis is TestDeadlines with the schedule in a Redis sorted set. A client does not see where the schedule is: three of them, in as
// many languages, and not all.
func TestDeadlinesWithRedis(t *testing.T) {
	redis := testenv.StartRedis(t)
	for _, c := range clients {
		if !slices.Contains([]string{"amqp091-go", "pika", "java"}, c.name) {
			continue
		}
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
		name  string
		fault func(*testenv.Redis) *fault
	}{
		{"killed", killed},
		{"flushed", flushed},
		{"paused", paused},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			redis := testenv.StartRedis(t)
			broker := startCurfew(t, "REDIS_URL="+redis.URL)
			eventually(t, recoverLimit, "the schedule in Redis", func() bool { return broker.metric("curfew_schedule_up") == 1 })
			repaired := broker.metric("curfew_reconcile_repaired_total")

			failing, machine := f.fault(redis), watchMachine()
			m := deadlineRun(t, goClient{}, broker, "orders", &fault{
				strike: func() { failing.strike(); noticed(t, broker) },
				heal:   failing.heal,
			})

			sleeps := machine(m.from, m.to)
			if p99, _ := m.p99(t, sleeps); p99 > degradedWithin+sleeps[len(sleeps)-1] {
				t.Errorf("p99 is over %v and the longest stall of the machine", degradedWithin)
			}
			eventually(t, recoverLimit, "health to be ok again", func() bool { return broker.healthy() && broker.metric("curfew_schedule_up") == 1 })
			if drift := broker.metric("curfew_reconcile_repaired_total") - repaired; drift == 0 {
				t.Error("no drift was counted")
			}
			inRedis(t, redis, broker)
		})
	}
}

// TestLostFolder: a start with an empty folder looks like a first one, except that Redis has deadlines of this instance. Health says so until the
// next start.
func TestLostFolder(t *testing.T) {
	redis := testenv.StartRedis(t)
	settings := []string{"REDIS_URL=" + redis.URL, "INSTANCE=one"}
	first := startCurfew(t, settings...)
	ch := openChannel(t, dial(t, first.url))
	_, err := ch.QueueDeclare("orders", true, false, false, false, nil)
	check(t, err)
	for range 3 {
		check(t, ch.PublishWithContext(t.Context(), "", "orders", false, false, amqp091.Publishing{DeliveryMode: amqp091.Persistent, Expiration: "3600000"}))
	}
	eventually(t, recoverLimit, "the deadlines in Redis", func() bool { return first.metric("curfew_schedule_up") == 1 && shadows(t, redis) == 3 })
	if !first.healthy() {
		t.Error("a first start is not healthy")
	}
	first.stop()

	settings = append(settings, "DATA_DIR="+t.TempDir())
	second := startCurfew(t, settings...)
	eventually(t, recoverLimit, "health to say that messages are missing", func() bool {
		_, body := second.fetch("/healthz")
		return strings.Contains(body, "Redis has the deadlines of 3 messages of an earlier run") && second.metric("curfew_messages_missing") == 3
	})
	second.stop()

	third := startCurfew(t, settings...)
	eventually(t, recoverLimit, "the schedule in Redis", func() bool { return third.metric("curfew_schedule_up") == 1 })
	eventually(t, recoverLimit, "health to say that nothing is missing: the folder is no longer new", third.healthy)
}

// killed: away while the second half is published and beyond, then back, empty.
func killed(redis *testenv.Redis) *fault { return outage(redis.Kill, redis.Restart) }

// paused: stopped with its connections open, and then back with all it had.
func paused(redis *testenv.Redis) *fault { return outage(redis.Pause, redis.Resume) }

func outage(strike, heal func()) *fault {
	var over <-chan time.Time
	return &fault{
		strike: func() { strike(); over = time.After(outageFor) },
		heal:   func() { <-over; heal() },
	}
}

// flushed: emptied by somebody else.
func flushed(redis *testenv.Redis) *fault {
	return &fault{strike: func() { redis.Do("FLUSHALL") }, heal: func() {}}
}

// noticed waits for health to say degraded, with a reason that names Redis. An emptied Redis can be whole again within milliseconds; then
// the log has it.
func noticed(t *testing.T, broker *curfew) {
	t.Helper()
	eventually(t, noticeLimit, "health to be degraded", func() bool {
		return broker.degraded() || strings.Contains(broker.log.String(), "schedule down")
	})
}

// inRedis looks for the hour-long message's shadow, the one left of the run.
func inRedis(t *testing.T, redis *testenv.Redis, broker *curfew) {
	t.Helper()
	eventually(t, recoverLimit, "the one pending deadline in Redis", func() bool { return shadows(t, redis) == 1 })
	eventually(t, recoverLimit, "one deadline to be pending", func() bool { return broker.metric("curfew_deadlines_pending") == 1 })
}

// shadows counts those of all instances.
func shadows(t *testing.T, redis *testenv.Redis) (members int64) {
	t.Helper()
	keys, err := redis.Client.Keys(t.Context(), "{curfew:*}:due:2").Result()
	check(t, err)
	for _, key := range keys {
		n, err := redis.Client.ZCount(t.Context(), key, "-inf", "(+inf").Result() // the epoch's score is +inf
		check(t, err)
		members += n
	}
	return members
}
