package rabbitmq

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/cluster"
)

const patience = 2 * time.Minute

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, patience, 10*time.Millisecond, what)
}

// TestReplicasShareQueues: one Curfew keeps everything; a second one gets its share; when that one ends, or disappears, the first takes
// everything back.
func TestReplicasShareQueues(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	rabbitmq := newFakeRabbitMQ(t)
	const queues = 5
	for i := range queues {
		rabbitmq.declare(fmt.Sprintf("keep-%d", i))
	}
	a := newRunning(t, rabbitmq, "a", server.Client).start()
	eventually(t, "all at one", func() bool { return len(a.kept()) == queues })
	eventually(t, "a to observe", func() bool { return a.Status().Observer == "a" })

	b := newRunning(t, rabbitmq, "b", server.Client).start()
	eventually(t, "shares", func() bool { return len(a.kept()) == 3 && len(b.kept()) == 2 })
	eventually(t, "b to know both", func() bool { return slices.Equal(b.Status().Members, []string{"a", "b"}) })
	eventually(t, "each to know who keeps what", func() bool {
		for _, q := range b.kept() {
			if row := a.row(q); row.Keeper != "b" || row.Here {
				return false
			}
		}
		return true
	})
	eventually(t, "b to know who observes", func() bool { return b.Status().Observer == "a" })

	ended := time.Now()
	b.stop()
	eventually(t, "all at a again", func() bool { return len(a.kept()) == queues })
	t.Logf("taken over after %v", time.Since(ended))
	a.stop()
	require.Empty(t, server.Client.Keys(t.Context(), "*:lease").Val(), "nobody has a lease")
}

// TestReplicaGoneWithoutAWord: when a Curfew disappears without announcing it, others take its leases once they expire.
func TestReplicaGoneWithoutAWord(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	rabbitmq := newFakeRabbitMQ(t)
	rabbitmq.declare("keep-0", "keep-1", "keep-2", "keep-3")
	lost := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	a := newRunning(t, rabbitmq, "a", lost).start()
	eventually(t, "all at one", func() bool { return len(a.kept()) == 4 })
	b := newRunning(t, rabbitmq, "b", server.Client).start()
	eventually(t, "shares", func() bool { return len(a.kept()) == 2 && len(b.kept()) == 2 })
	require.NoError(t, lost.Close()) // a no longer reaches Redis: it goes on, and b takes the queues whose leases it gets
	began := time.Now()
	eventually(t, "all leases at b", func() bool { return len(b.kept()) == 4 })
	t.Logf("taken over after %v", time.Since(began))
	eventually(t, "a to say so", func() bool { return len(a.Status().Reasons) == 1 && a.Status().Redis == "down" })
	require.Contains(t, a.Status().Reasons[0], "Redis has not answered")
	require.Len(t, a.kept(), 2, "keeping goes on")
	eventually(t, "b to observe", func() bool { return b.Status().Observer == "b" })
}

// TestUnwantedQueues: a Curfew keeps queues beyond its share if nobody else takes them, and does not offer them again.
func TestUnwantedQueues(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	all, few := newFakeRabbitMQ(t), newFakeRabbitMQ(t)
	all.declare("keep-0", "keep-1", "keep-2", "keep-3")
	a := newRunning(t, all, "a", server.Client).start()
	b := newRunning(t, few, "b", server.Client).start() // has a rule for none of them
	eventually(t, "both", func() bool { return len(a.Status().Members) == 2 && len(b.Status().Members) == 2 })
	eventually(t, "all at a", func() bool { return len(a.kept()) == 4 })
	last, since := -1, time.Now()
	eventually(t, "queues not to change hands for nothing", func() bool {
		changes := a.count("keep-0") + a.count("keep-1") + a.count("keep-2") + a.count("keep-3")
		if changes != last || len(a.kept()) < 4 { // a member that a busy machine kept from beating is a new one: it is offered its share
			last, since = changes, time.Now()
		}
		return time.Since(since) > settledAfter+yieldPause+time.Second // an offer, and taking back what is not wanted
	})
}

// TestRedisAwayAtTheStart: nothing is taken while Redis does not answer, and health says so.
func TestRedisAwayAtTheStart(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	rabbitmq := newFakeRabbitMQ(t)
	rabbitmq.declare("keep-0")
	server.Kill()
	a := newRunning(t, rabbitmq, "a", server.Client).start()
	eventually(t, "the queue to be known", func() bool { return a.row("keep-0").State == "observing" })
	eventually(t, "the reason", func() bool { return len(a.Status().Reasons) == 1 })
	require.Empty(t, a.kept())
	require.Nil(t, a.observing.observer)
	server.Restart()
	eventually(t, "the queue at a", func() bool { return len(a.kept()) == 1 })
	eventually(t, "health", func() bool { return len(a.Status().Reasons) == 0 })
}

// TestReplicasThatDoNotKnowTheirCluster keep nothing, and say what to do, until they know.
func TestReplicasThatDoNotKnowTheirCluster(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	rabbitmq := newFakeRabbitMQ(t)
	rabbitmq.declare("keep-0")
	rabbitmq.noID = errors.New("give Curfew's user the permissions")
	a := newRunning(t, rabbitmq, "a", server.Client).start()
	eventually(t, "a condition", func() bool { all := a.conditionsOf(""); return len(all) == 1 && all[0][0] == "identity" })
	require.Contains(t, a.Status().Reasons[0], "give Curfew's user the permissions")
	require.Zero(t, a.count("keep-0"))
	_, listed := rabbitmq.counts()
	eventually(t, "it to ask again", func() bool { named, _ := rabbitmq.counts(); return named > listed+1 })
	_, again := rabbitmq.counts()
	require.Equal(t, listed, again, "for that alone the queues are not listed")
	rabbitmq.set(cluster.Changed, func(map[string]cluster.Queue) { rabbitmq.noID = nil })
	eventually(t, "the queue to be kept", func() bool { return len(a.kept()) == 1 })
	require.Empty(t, a.Conditions())
}

// TestPause: one command ends keeping everywhere, also for a Curfew that comes later and when Redis loses everything, until another one ends that.
func TestPause(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	rabbitmq := newFakeRabbitMQ(t)
	rabbitmq.declare("keep-0", "keep-1")
	a := newRunning(t, rabbitmq, "a", server.Client).start()
	b := newRunning(t, rabbitmq, "b", server.Client).start()
	all := func() int { return len(a.kept()) + len(b.kept()) }
	eventually(t, "all to be kept", func() bool { return all() == 2 })
	require.ErrorIs(t, a.Resume(t.Context()), ErrNotPaused)
	require.NoError(t, a.Pause(t.Context()))
	paused := func(r *running) func() bool {
		return func() bool {
			return r.row("keep-0").State == "paused" && r.row("keep-1").State == "paused" && len(r.Status().Reasons) == 1
		}
	}
	eventually(t, "nothing to be kept", func() bool { return all() == 0 && paused(a)() && paused(b)() })
	require.Contains(t, b.Status().Reasons[0], "curfew rabbitmq resume")
	require.NoError(t, server.Client.FlushAll(t.Context()).Err())
	c := newRunning(t, rabbitmq, "c", server.Client).start()
	eventually(t, "a Curfew that came later to be paused", paused(c))
	require.NoError(t, c.Resume(t.Context()))
	eventually(t, "all to be kept again", func() bool { return all()+len(c.kept()) == 2 && len(a.Status().Reasons) == 0 })

	alone := newRunning(t, rabbitmq, "alone", nil).start()
	eventually(t, "all to be kept by one", func() bool { return len(alone.kept()) == 2 })
	require.NoError(t, alone.Pause(t.Context()))
	eventually(t, "one to be paused", func() bool { return len(alone.kept()) == 0 && paused(alone)() })
	require.NoError(t, alone.Resume(t.Context()))
	eventually(t, "one to keep again", func() bool { return len(alone.kept()) == 2 })
}

// TestLookEvery: the more queues a Curfew keeps, the less often it looks at each.
func TestLookEvery(t *testing.T) {
	for wanted, every := range map[int]time.Duration{1: 5 * time.Millisecond, 200: time.Second, 5000: 5 * time.Second} {
		g := &group{members: []string{"one"}, wanted: wanted}
		require.Equal(t, every, g.lookEvery())
	}
	require.Equal(t, time.Second, (&group{members: []string{"one", "two"}, wanted: 400}).lookEvery())
}
