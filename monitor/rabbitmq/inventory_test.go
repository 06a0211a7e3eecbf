package rabbitmq

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/delay"
	"curfew/monitor/rabbitmq/keeper"
)

// TestKeepersFollowTheInventory: a keeper runs as long as its queue exists and nothing prevents keeping it.
func TestKeepersFollowTheInventory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "other")
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		require.Equal(t, "keeping", r.row("keep-a").State)
		require.True(t, r.row("keep-a").Here)
		require.Equal(t, "one", r.row("keep-a").Keeper)
		require.Equal(t, "observed", r.row("other").State)
		require.Zero(t, r.count("other"))

		rabbitmq.declare("keep-b")
		time.Sleep(time.Second)
		require.Equal(t, "keeping", r.row("keep-b").State)

		r.keeper("keep-a").knows = []keeper.Shadow{{Fingerprint: 1, Deadline: 2}}
		rabbitmq.setPolicy("keep-a", map[string]any{"max-length": int64(10)})
		time.Sleep(time.Second)
		row := r.row("keep-a")
		require.Equal(t, "refused", row.State)
		require.Equal(t, string(cluster.DropsHead), row.Code)
		require.NotEmpty(t, row.Instead)
		require.False(t, row.Here)
		require.Equal(t, keeper.Stopped, r.keeper("keep-a").Status().State, "all was given back")

		rabbitmq.setPolicy("keep-a", nil)
		time.Sleep(time.Second)
		require.Equal(t, "keeping", r.row("keep-a").State)
		require.Equal(t, 2, r.count("keep-a"))
		require.Equal(t, []keeper.Shadow{{Fingerprint: 1, Deadline: 2}}, r.keeper("keep-a").o.Remembered, "what the last one knew")
		require.Empty(t, r.row("keep-a").Code)

		rabbitmq.set(cluster.QueueDeleted, func(queues map[string]cluster.Queue) { delete(queues, "keep-b") })
		time.Sleep(time.Second)
		require.Empty(t, r.row("keep-b").Queue)
		require.Equal(t, keeper.Stopped, r.keeper("keep-b").Status().State)
		require.Equal(t, 1, r.count("keep-b"))
	})
}

// TestFactsReachTheKeeper: a policy that does not prevent keeping changes the facts, and the keeper gets them.
func TestFactsReachTheKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a")
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		readFacts := func() keeper.Facts {
			time.Sleep(refreshEvery)
			facts, err := r.keeper("keep-a").o.Facts(t.Context())
			require.NoError(t, err)
			return facts
		}
		facts := readFacts()
		require.Equal(t, keeper.Facts{Type: cluster.Quorum, Family: cluster.Family3, TTL: -1, Others: keeper.Absent}, facts)
		rabbitmq.setPolicy("keep-a", map[string]any{"delivery-limit": int64(40), "consumer-timeout": int64(60_000)})
		time.Sleep(time.Second)
		k := r.keeper("keep-a")
		require.Equal(t, []keeper.Event{{Kind: keeper.FactsChanged}}, k.seen())
		require.Equal(t, 40, k.facts.DeliveryLimit)
		require.Equal(t, time.Minute, k.facts.ConsumerTimeout)

		rabbitmq.attach("keep-a", "curfew.keeper.one.7")
		rabbitmq.attach("keep-a", "curfew.keeper.one.more.7")
		require.Equal(t, keeper.Absent, readFacts().Others, "they are Curfews'")
		rabbitmq.attach("keep-a", "curfew.keeperless")
		require.Equal(t, keeper.Present, readFacts().Others)
		rabbitmq.fail(errors.New("connection refused"))
		require.Equal(t, keeper.Unclear, readFacts().Others)
		time.Sleep(unknownFor)
		require.Equal(t, keeper.Unlisted, readFacts().Others)
		rabbitmq.fail(nil)
		require.Equal(t, keeper.Present, readFacts().Others)
	})
}

// TestInventoryAway: while RabbitMQ does not list its queues, queues already kept stay kept, and health says so.
func TestInventoryAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a")
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		require.Empty(t, r.Status().Reasons)
		rabbitmq.fail(errors.New("connection refused"))
		time.Sleep(time.Hour)
		require.Equal(t, "keeping", r.row("keep-a").State)
		require.Equal(t, 1, r.count("keep-a"))
		require.Len(t, r.Status().Reasons, 1)
		require.Contains(t, r.Status().Reasons[0], "stay kept (connection refused)")
		facts, err := r.keeper("keep-a").o.Facts(t.Context())
		require.NoError(t, err)
		require.Equal(t, cluster.Quorum, facts.Type, "the last ones known")
		rabbitmq.fail(nil)
		time.Sleep(time.Minute)
		require.Empty(t, r.Status().Reasons)
	})
}

// TestQueuesComeAndGoAllTheTime: listing them again and again is a small part of the time, and whoever asks does not wait.
func TestQueuesComeAndGoAllTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.slow = time.Second
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(10 * time.Second)
		_, before := rabbitmq.counts()
		for range 600 {
			rabbitmq.set(cluster.Changed, func(map[string]cluster.Queue) {})
			time.Sleep(100 * time.Millisecond)
		}
		_, after := rabbitmq.counts()
		require.InDelta(t, 12, after-before, 2)
		began := time.Now()
		require.NoError(t, r.look(t.Context()))
		require.Less(t, time.Since(began), 3*time.Second)
	})
}

// TestManyQueuesAreListedSeldom: while nothing happens, listing them is a fifth of the time at most, however long it takes.
func TestManyQueuesAreListedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.slow = 20 * time.Second
		newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(5 * time.Minute)
		_, before := rabbitmq.counts()
		time.Sleep(1000 * time.Second)
		_, after := rabbitmq.counts()
		require.InDelta(t, 10, after-before, 1)
	})
}

// TestQueueIsFoundSoon: however long listing the queues takes, a queue that is declared is kept soon, whenever that is.
func TestQueueIsFoundSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.slow = 7 * time.Second
		r := newRunning(t, rabbitmq, "one", nil).start()
		for i := range 30 {
			time.Sleep(time.Duration(i) * 3 * time.Second)
			name := fmt.Sprintf("keep-%02d", i)
			rabbitmq.declare(name)
			time.Sleep(3*rabbitmq.slow + time.Second)
			require.Equal(t, "keeping", r.row(name).State, i)
		}
	})
}

// TestQueueIsKnownLate: a queue of which RabbitMQ does not say everything yet is looked at until it does, for a minute.
func TestQueueIsKnownLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Minute)
		know := func(unknown cluster.Unknown) {
			rabbitmq.mu.Lock()
			defer rabbitmq.mu.Unlock()
			q := rabbitmq.queues["keep-a"]
			q.Unknown = unknown
			rabbitmq.queues["keep-a"] = q
		}
		rabbitmq.declare("keep-a")
		know(cluster.UnknownPolicy)
		time.Sleep(20 * time.Second)
		require.Equal(t, string(cluster.CannotBeKnown), r.row("keep-a").Code)
		know(0)
		time.Sleep(lookAgain + time.Second)
		require.Equal(t, "keeping", r.row("keep-a").State)

		know(cluster.UnknownPolicy)
		time.Sleep(unknownFor + refreshEvery + time.Second)
		require.Equal(t, string(cluster.CannotBeKnown), r.row("keep-a").Code)
		_, before := rabbitmq.counts()
		time.Sleep(10 * refreshEvery)
		_, after := rabbitmq.counts()
		require.InDelta(t, 10, after-before, 1, "it may never be known")
	})
}

// TestRetriesShareOneList: what leads to the queues is listed once for all queues of retries, with the inventory.
func TestRetriesShareOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.bindings = []cluster.Binding{{Exchange: "retry", Queue: "a.retry"}}
		r := newRunning(t, rabbitmq, "one", nil)
		var err error
		r.watch, err = cluster.ParseWatchFile([]byte(`queues: [{queue: "*.retry", mode: retry, backoff: [1s]}]`))
		require.NoError(t, err)
		var made []delay.Options
		r.newDelay = func(o delay.Options) (queueKeeper, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			made = append(made, o)
			return &fakeKeeper{o: o.Options}, nil
		}
		rabbitmq.declare("a.retry", "b.retry", "c.retry")
		r.start()
		time.Sleep(time.Minute)
		_, asked := rabbitmq.counts()
		require.Len(t, made, 3)
		for _, o := range made {
			exchanges, bindings, err := o.Topology()
			require.NoError(t, err)
			require.Equal(t, rabbitmq.bindings, bindings)
			require.Contains(t, exchanges, "shop")
		}
		require.Equal(t, asked, rabbitmq.led)
		rabbitmq.set(cluster.QueueDeleted, func(queues map[string]cluster.Queue) { clear(queues) })
		r.Primary.mu.Lock()
		r.observing.observer = nil
		r.Primary.mu.Unlock()
		time.Sleep(refreshEvery)
		_, _, err = made[0].Topology()
		require.Error(t, err, "nobody has asked")
		gone := r.Primary.Conditions()
		require.Len(t, gone, 3)
		require.Equal(t, []string{"deleted", "a.retry"}, []string{gone[0].Name, gone[0].Affected})
		require.Contains(t, gone[0].Reason, "was deleted")
		rabbitmq.declare("a.retry")
		time.Sleep(time.Second)
		require.Len(t, r.Primary.Conditions(), 2)
		time.Sleep(deletedFor + refreshEvery)
		require.Empty(t, r.Primary.Conditions())
	})
}

// TestWhatComesAndGoes: no keeper ends because RabbitMQ cannot say something for a moment, or because of a fact that the keeper judges by
// itself; a queue that is read with basic.get is left alone for a while.
func TestWhatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a")
		r := newRunning(t, rabbitmq, "one", nil)
		change := func(fn func(q *cluster.Queue)) {
			rabbitmq.set(cluster.Changed, func(queues map[string]cluster.Queue) {
				q := queues["keep-a"]
				fn(&q)
				queues["keep-a"] = q
			})
			time.Sleep(time.Second)
		}
		change(func(q *cluster.Queue) { q.Unknown = cluster.UnknownPolicy })
		r.start()
		time.Sleep(time.Second)
		require.Empty(t, r.count("keep-a"), "nothing is begun with a queue of which so little is known")
		require.Equal(t, string(cluster.CannotBeKnown), r.row("keep-a").Code)
		change(func(q *cluster.Queue) { q.Unknown = 0 })
		require.Equal(t, "keeping", r.row("keep-a").State)
		change(func(q *cluster.Queue) { q.Unknown = cluster.UnknownPolicy })
		require.Equal(t, "keeping", r.row("keep-a").State, "but it stays kept for a while")
		time.Sleep(unknownFor + refreshEvery)
		require.Equal(t, string(cluster.CannotBeKnown), r.row("keep-a").Code)
		change(func(q *cluster.Queue) { q.Unknown = 0 })
		require.Equal(t, "keeping", r.row("keep-a").State)

		change(func(q *cluster.Queue) { q.Ready = 1_000_000 })
		require.Equal(t, "keeping", r.row("keep-a").State, "its keeper counts by itself")
		change(func(q *cluster.Queue) { q.Ready, q.State = 0, "minority" })
		require.Equal(t, "keeping", r.row("keep-a").State)

		change(func(q *cluster.Queue) { q.State, q.Polled = "running", true })
		require.Equal(t, string(cluster.IsPolled), r.row("keep-a").Code)
		change(func(q *cluster.Queue) { q.Polled = false })
		require.Equal(t, "keeping", r.row("keep-a").State)
	})
}

// TestStrandedMessages: when a quorum queue counts more messages than its keeper holds, for longer than counts may be old,
// that is reported, with what to do; a difference that comes and goes is not. So are messages that are ready although the keeper has taken all.
func TestStrandedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a")
		r := newRunning(t, rabbitmq, "one", nil).start()
		counts := func(unacked int64) {
			rabbitmq.set(cluster.Changed, func(queues map[string]cluster.Queue) {
				q := queues["keep-a"]
				q.Type, q.Unacked = cluster.Quorum, unacked
				queues["keep-a"] = q
			})
			time.Sleep(time.Second)
		}
		counts(0)
		held := r.row("keep-a").Held
		for _, unacked := range []int64{500, 0, 300, int64(held) + strandedLeast - 1} {
			counts(unacked)
			time.Sleep(strandedAfter / 2)
			require.Zero(t, r.row("keep-a").Stranded)
		}
		require.Empty(t, r.Status().Reasons)
		counts(int64(held) + 500)
		time.Sleep(strandedAfter / 2)
		counts(int64(held) + 300)
		time.Sleep(strandedAfter)
		row := r.row("keep-a")
		require.Equal(t, "keeping", row.State)
		require.EqualValues(t, 300, row.Stranded, "the fewest that were counted")
		require.Equal(t, strandedCode, row.Code)
		require.Len(t, r.Status().Reasons, 1)
		require.Contains(t, r.Status().Reasons[0], "another leader")
		counts(int64(held))
		require.Zero(t, r.row("keep-a").Stranded)
		require.Empty(t, r.Status().Reasons)
		r.keeper("keep-a").change(func(s *keeper.Status) { s.Commands = 300 })
		counts(int64(held) + 300)
		time.Sleep(2 * strandedAfter)
		require.Zero(t, r.row("keep-a").Stranded, "commands that wait for what is put aside")
		counts(int64(held) + 300 + strandedLeast)
		time.Sleep(2 * strandedAfter)
		require.EqualValues(t, strandedLeast, r.row("keep-a").Stranded)
		r.keeper("keep-a").change(func(s *keeper.Status) { s.Commands = 0 })
		for _, one := range []struct {
			ready    int
			caughtUp bool
			stranded int64
		}{{1120, false, 0}, {strandedLeast - 1, true, 0}, {1120, true, 1120}, {0, true, 0}} {
			r.keeper("keep-a").change(func(s *keeper.Status) { s.Ready, s.CaughtUp = one.ready, one.caughtUp })
			counts(int64(held)) // a fact that has changed: RabbitMQ is asked at once
			time.Sleep(2 * strandedAfter)
			require.Equal(t, one.stranded, r.row("keep-a").Stranded, one)
			require.Equal(t, one.stranded > 0, len(r.Status().Reasons) > 0, one)
		}
	})
}
