package rabbitmq

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/integration/testenv"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/delay"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/observe"
)

// TestEachTellsTheOthers: each Curfew shows what the other one keeps and observes: who, how much, what is due next, what was seen. When the other
// one is gone, so is its report.
func TestEachTellsTheOthers(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	rabbitmq := newFakeRabbitMQ(t)
	rabbitmq.declare("keep-0", "other")
	a := newRunning(t, rabbitmq, "a", server.Client).start()
	eventually(t, "the queue at a, which observes", func() bool { return len(a.kept()) == 1 && a.Status().Observer == "a" })
	b := newRunning(t, rabbitmq, "b", server.Client).start()
	due := a.Now().Add(time.Hour)
	a.keeper("keep-0").change(func(s *keeper.Status) {
		s.Held, s.HeldBytes, s.NextDue, s.Counts.Expired = 7, 700, due, 3
		s.Reason, s.Seen = "no other consumer", cluster.TTLStats{Messages: 10, Expiring: 9, Least: 50, Most: 3_600_000}
	})
	a.keeper("keep-0").o.Expired([]keeper.Expiry{{Deadline: 1_000_000, GivenBack: 1_004_000}})
	a.watcher().say(observe.State{Queue: "other", Tapped: true, Ready: 5, Overdue: 2, Counts: observe.Counts{Missed: 9}, Seen: cluster.TTLStats{Messages: 4}})

	var row Queue
	eventually(t, "b to show what a keeps", func() bool { row = b.row("keep-0"); return row.Held == 7 && row.P50 != nil && row.Seen != nil })
	require.False(t, row.Here)
	require.True(t, row.Reported)
	require.Equal(t, "a", row.Keeper)
	require.Equal(t, "keeping", row.State)
	require.Equal(t, "no other consumer", row.Reason)
	require.EqualValues(t, 700, row.HeldBytes)
	require.Equal(t, due.UnixMilli(), row.NextDue)
	require.EqualValues(t, 3, row.Expired)
	require.Equal(t, 5.0, *row.P50)
	require.Equal(t, &cluster.TTLStats{Messages: 10, Expiring: 9, Least: 50, Most: 3_600_000}, row.Seen)
	eventually(t, "b to show what a observes", func() bool { row = b.row("other"); return row.Observed != nil && row.Seen != nil })
	require.Equal(t, 2, row.Observed.Overdue)
	require.Equal(t, 4, row.Seen.Messages)
	require.False(t, a.row("keep-0").Reported)

	a.stop()
	eventually(t, "the queue at b", func() bool { return len(b.kept()) == 1 })
	require.Zero(t, b.row("keep-0").Held)
	require.False(t, b.row("keep-0").Reported)
}

// TestReportsAreWhole: what another Curfew reports of a queue that it holds is shown as it shows it itself, and what was found out here stays.
func TestReportsAreWhole(t *testing.T) {
	trouble := []delay.Trouble{{Name: "binding", Reason: "it was missing"}}
	told := Queue{
		Queue: "a", Type: "quorum", Mode: "delay", State: "keeping", Reason: "no other consumer", Here: true, Troubles: trouble,
		Engine: "aside+hold", Aside: 5, AsideKnown: 4, Held: 3, Stranded: 2, SharedWith: "three",
	}
	row := Queue{VHost: "shop", Queue: "a", Type: "quorum", Mode: "delay", State: "observing", Mind: []string{"limits"}, running: true}
	row.complete("two", &told)
	want := told
	want.VHost, want.Mind, want.running, want.Keeper, want.Here, want.Reported = "shop", []string{"limits"}, true, "two", false, true
	require.Equal(t, want, row)
}

// TestClustersShareARedis: different clusters share Redis, with queues and virtual hosts of the same names.
func TestClustersShareARedis(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	one, two := newFakeRabbitMQ(t), newFakeRabbitMQ(t)
	one.name, two.name = "rabbit@one", "rabbit@two"
	one.declare("keep-0")
	two.declare("keep-0")
	a := newRunning(t, one, "a", server.Client).start()
	b := newRunning(t, two, "b", server.Client).start()
	eventually(t, "each to keep its own", func() bool { return len(a.kept()) == 1 && len(b.kept()) == 1 })
	eventually(t, "each to observe its own", func() bool { return a.Status().Observer == "a" && b.Status().Observer == "b" })
	require.Equal(t, []string{"a"}, a.Status().Members)
	require.Equal(t, "rabbit@one", a.Status().Cluster)

}

// TestNothingInRedisBeforeTheClusterIsKnown: the keys need its identity. Health still names the Redis that does not answer.
func TestNothingInRedisBeforeTheClusterIsKnown(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	rabbitmq := newFakeRabbitMQ(t)
	rabbitmq.fail(context.DeadlineExceeded)
	a := newRunning(t, rabbitmq, "a", server.Client).start()
	eventually(t, "RabbitMQ to be asked", func() bool { return len(a.Status().Reasons) == 1 })
	server.Kill()
	eventually(t, "Redis to be down", func() bool { return a.Status().Redis == "down" && len(a.Status().Reasons) == 2 })
	server.Restart()
	eventually(t, "Redis to be up", func() bool { return a.Status().Redis == "up" })
	require.Empty(t, server.Client.Keys(t.Context(), "*").Val())
	rabbitmq.fail(nil)
	rabbitmq.declare("keep-0")
	eventually(t, "the queue at a", func() bool { return len(a.kept()) == 1 && a.Status().Redis == "up" })
}

// TestTimeToLiveOfAKeptQueue: a queue that is kept stays kept when a policy gives it a time to live. So is one that has a time to live from
// the first and cannot be tapped: nobody would see a message with a shorter one.
func TestTimeToLiveOfAKeptQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "keep-b", "keep-c")
		rabbitmq.setPolicy("keep-b", map[string]any{"message-ttl": int64(60_000)})
		rabbitmq.setPolicy("keep-c", map[string]any{"message-ttl": int64(60_000)})
		rabbitmq.bindings = []cluster.Binding{{Exchange: "shop", Queue: "keep-a"}, {Exchange: "shop", Queue: "keep-c"}}
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		require.Equal(t, "keeping", r.row("keep-a").State)
		require.Equal(t, "keeping", r.row("keep-b").State, "nothing but the default exchange leads to it")
		require.Equal(t, "exact", r.row("keep-c").State)
		rabbitmq.setPolicy("keep-a", map[string]any{"message-ttl": int64(60_000)})
		time.Sleep(time.Minute)
		require.Equal(t, "keeping", r.row("keep-a").State)
	})
}

// TestWhatWasSeenDecides: a queue with a time to live is exact until a message with a shorter one was seen; a queue whose messages mostly have
// none is not worth keeping. A running keeper judges that by itself.
func TestWhatWasSeenDecides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "keep-b")
		rabbitmq.setPolicy("keep-a", map[string]any{"message-ttl": int64(60_000)})
		rabbitmq.bindings = []cluster.Binding{{Exchange: "shop", Queue: "keep-a"}}
		r := newRunning(t, rabbitmq, "one", nil).start()
		look := func() {
			rabbitmq.set(cluster.Changed, func(map[string]cluster.Queue) {})
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		require.Equal(t, "exact", r.row("keep-a").State)
		require.True(t, r.watcher().observes("keep-a"))
		require.False(t, r.watcher().observes("keep-b"))

		shorter := cluster.TTLStats{Messages: 5, Expiring: 5, Shorter: 1, Least: 100, Most: 60_000}
		r.watcher().say(observe.State{Queue: "keep-a", Seen: shorter})
		look()
		require.Equal(t, "keeping", r.row("keep-a").State)
		require.Equal(t, &shorter, r.row("keep-a").Seen)
		require.False(t, r.watcher().observes("keep-a"))
		r.watcher().say() // it is no longer observed
		r.keeper("keep-a").change(func(s *keeper.Status) { s.Seen = cluster.TTLStats{Messages: 3, Expiring: 3, Least: 50, Most: 50} })
		look()
		require.Equal(t, &cluster.TTLStats{Messages: 8, Expiring: 8, Shorter: 1, Least: 50, Most: 60_000}, r.row("keep-a").Seen)
		require.Equal(t, "keeping", r.row("keep-a").State)

		few := cluster.TTLStats{Messages: 1000, Expiring: 10, Least: 1, Most: 1}
		r.keeper("keep-b").change(func(s *keeper.Status) { s.Seen = few })
		look()
		require.Equal(t, "keeping", r.row("keep-b").State, "its keeper judges by itself")
		rabbitmq.setPolicy("keep-b", map[string]any{"expires": int64(1000)})
		time.Sleep(time.Second)
		rabbitmq.setPolicy("keep-b", nil)
		time.Sleep(time.Second)
		require.Equal(t, "not_worth", r.row("keep-b").State, "it is not begun with again")
		require.Equal(t, string(cluster.FewDeadlines), r.row("keep-b").Code)

		rabbitmq.set(cluster.QueueDeleted, func(queues map[string]cluster.Queue) { delete(queues, "keep-b") })
		time.Sleep(time.Second)
		rabbitmq.declare("keep-b")
		time.Sleep(time.Second)
		require.Equal(t, "keeping", r.row("keep-b").State, "another queue of that name")
	})
}

// TestOneInventory: the keepers and the observer get the same inventory.
func TestOneInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "other")
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		o := r.watcher()
		require.True(t, o.observes("other"))
		require.False(t, o.observes("keep-a"))
		require.Equal(t, "bindings are not known", o.unknown().Error())
		asked := func() (n int) {
			_, n = rabbitmq.counts()
			return n
		}
		time.Sleep(time.Minute)
		before := asked()
		time.Sleep(10 * refreshEvery)
		require.InDelta(t, 10, asked()-before, 1, "one inventory each half minute")
		rabbitmq.mu.Lock()
		require.Len(t, rabbitmq.events, 1, "and one connection for events")
		rabbitmq.mu.Unlock()

		rabbitmq.setPolicy("keep-a", map[string]any{"max-length": int64(10)})
		time.Sleep(time.Second)
		require.True(t, o.observes("keep-a"), "it is refused, so observed")

		before = asked()
		r.event(cluster.Event{Kind: cluster.BindingChanged, Queue: "other"})
		time.Sleep(time.Second)
		require.Greater(t, asked(), before, "a tap follows bindings")
	})
}

// TestIntendedExpiries: messages in a queue whose rule says keep are meant to expire, wherever their expiry is seen, unless the rule says
// otherwise; and none of them is at risk.
func TestIntendedExpiries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "keep-jobs", "other")
		r := newRunning(t, rabbitmq, "one", nil)
		var err error
		r.watch, err = cluster.ParseWatchFile([]byte("queues: [{queue: keep-jobs, mode: keep, alert_on_expiry: true}, {queue: keep-*, mode: keep}, {queue: '*'}]"))
		require.NoError(t, err)
		r.start()
		time.Sleep(time.Second)
		for queue, want := range map[string]bool{"keep-a": true, "keep-jobs": false} {
			r.expired = nil
			r.keeper(queue).o.Expired([]keeper.Expiry{{}})
			require.Equal(t, want, r.expired[0].Intended, queue)
		}
		for queue, want := range map[string]bool{"keep-a": true, "keep-jobs": false, "other": false} {
			r.expired = nil
			r.watcher().o.Expired([]deadline.Expiry{{VHost: "shop", Queue: queue}})
			require.Equal(t, want, r.expired[0].Intended, queue)
		}
	})
}
