package monitor

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/broker/deadline"
	"curfew/monitor/alert"
	"curfew/scheduler"
	"curfew/scheduler/redisstore"
	"curfew/scheduler/storetest"
)

// member is one of several monitors that watch each other.
type member struct {
	*fakeBroker
	store    *fakeInstance
	registry *prometheus.Registry
	logs     *observer.ObservedLogs
	monitor  *Monitor
	stop     func()
}

// join starts a monitor under a name that is new to the registry, or back.
func join(t *testing.T, g *fakeRegistry, name string) *member {
	t.Helper()
	return joinWith(t, newFakeBroker(t), g.instance(name))
}

func joinWith(t *testing.T, b *fakeBroker, store *fakeInstance) *member {
	t.Helper()
	i := &member{fakeBroker: b, store: store}
	var o Options
	o, i.logs, i.registry = watchOptions(t, b)
	o.Redis = store
	i.monitor, i.stop = start(t, o)
	return i
}

func watchOptions(t *testing.T, b *fakeBroker) (o Options, logs *observer.ObservedLogs, reg *prometheus.Registry) {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	alerts, err := alert.New(alert.Options{Log: zap.New(core), File: alertsFile(t, "defaults: {wait: 1s}")})
	require.NoError(t, err)
	reg = prometheus.NewRegistry()
	return Options{Primary: b.view(), Log: zap.New(core), Alerts: alerts, Registerer: reg}, logs, reg
}

// told lists what the alerts said of silent instances.
func told(logs *observer.ObservedLogs) (lines []string) {
	for _, line := range logs.FilterField(zap.String("event", "instance_silent")).All() {
		f := line.ContextMap()
		lines = append(lines, fmt.Sprint(f["peer"], " ", f["status"], " ", f["count"]))
	}
	return lines
}

func (i *member) silent(t *testing.T, peer string) float64 {
	t.Helper()
	return gather(t, i.registry, "curfew_instance_silent", "peer", peer)
}

func TestSilentInstanceIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeRegistry()
		a, b, c := join(t, g, "a"), join(t, g, "b"), join(t, g, "c")
		time.Sleep(time.Minute)
		first := b.publish(7, time.Minute)
		b.publish(7, time.Minute)
		b.publish(8, time.Minute)
		b.publish(0, time.Minute) // its queue is deleted, so it has no name
		b.publish(9, 24*time.Hour)
		time.Sleep(5 * time.Second)
		b.stop()
		time.Sleep(10 * time.Second)
		require.Zero(t, a.silent(t, "b"))
		time.Sleep(15 * time.Second)
		require.Equal(t, 1.0, a.silent(t, "b"))
		require.Equal(t, 1.0, c.silent(t, "b"))
		require.Empty(t, told(a.logs), "nothing is due")

		time.Sleep(45 * time.Second)
		require.Equal(t, []string{"b firing 4"}, append(told(a.logs), told(c.logs)...), "by one of them")
		line := append(a.logs.FilterMessageSnippet("is silent and").All(), c.logs.FilterMessageSnippet("is silent and").All()...)[0]
		require.Contains(t, line.Message, `instance "b" is silent and 4 of its deadlines have passed: 2 in queue "q7" of vhost "/", `)
		require.Contains(t, line.Message, `1 in queue "q8" of vhost "/"`)
		require.Contains(t, line.Message, `1 in queue "number 0000000000000000"`)
		require.Equal(t, first.Deadline, deadline.At(line.ContextMap()["first_deadline"].(time.Time)))
		due := gather(t, a.registry, "curfew_instance_due_deadlines") + gather(t, c.registry, "curfew_instance_due_deadlines")
		require.Equal(t, 4.0, due)
		require.Zero(t, a.stats().asked+c.stats().asked, "its deadlines are its own")

		time.Sleep(25 * time.Hour)
		all := append(told(a.logs), told(c.logs)...)
		require.Equal(t, "b firing 5", all[len(all)-1], "told again after four hours, with what is due then")
		require.Less(t, len(all), 8)
		require.Equal(t, 1, a.logs.FilterMessageSnippet("instance is silent").Len(), "logged once")

		joinWith(t, b.fakeBroker, b.store)
		time.Sleep(5 * time.Second)
		all = append(told(a.logs), told(c.logs)...)
		require.Equal(t, "b resolved <nil>", all[len(all)-1])
		require.Zero(t, a.silent(t, "b"))
		require.Equal(t, 1, a.logs.FilterMessage("instance is back").Len())
	})
}

func TestGracefulStopIsNotTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeRegistry()
		a, b := join(t, g, "a"), join(t, g, "b")
		b.publish(7, time.Minute)
		time.Sleep(5 * time.Second)
		b.stop()
		b.store.leave()
		time.Sleep(time.Hour)
		require.Empty(t, told(a.logs))
		require.Zero(t, a.logs.FilterMessageSnippet("instance").Len())
	})
}

func TestSilentInstanceWithoutDeadlinesIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeRegistry()
		a, b := join(t, g, "a"), join(t, g, "b")
		time.Sleep(5 * time.Second)
		b.stop()
		time.Sleep(time.Minute)
		require.False(t, a.store.registered("b"))
		require.True(t, a.store.registered("a"))
		require.Empty(t, told(a.logs))
		require.Zero(t, a.silent(t, "b"))
	})
}

// When what was told of is gone, or another's turn, it is over.
func TestTellingEnds(t *testing.T) {
	for name, end := range map[string]func(g *fakeRegistry, b *member){
		"emptied":       func(_ *fakeRegistry, b *member) { b.store.flush() },
		"taken off":     func(_ *fakeRegistry, b *member) { b.store.leave() },
		"another's now": func(g *fakeRegistry, _ *member) { g.pass("b", "somebody") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newFakeRegistry()
				a, b := join(t, g, "a"), join(t, g, "b")
				b.publish(7, 10*time.Second)
				time.Sleep(5 * time.Second)
				b.stop()
				time.Sleep(time.Minute)
				require.Equal(t, []string{"b firing 1"}, told(a.logs))
				end(g, b)
				time.Sleep(time.Minute)
				require.Equal(t, []string{"b firing 1", "b resolved <nil>"}, told(a.logs))
				require.Zero(t, gather(t, a.registry, "curfew_instance_due_deadlines"))
			})
		})
	}
}

func TestTheTurnIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeRegistry()
		a, b := join(t, g, "a"), join(t, g, "b")
		g.pass("b", "c")
		b.publish(7, 10*time.Second)
		time.Sleep(5 * time.Second)
		b.stop()
		time.Sleep(time.Minute)
		require.Empty(t, told(a.logs))
		require.Equal(t, 1.0, a.silent(t, "b"))
		g.pass("b", "a")
		time.Sleep(countEvery + 5*time.Second)
		require.Equal(t, []string{"b firing 1"}, told(a.logs))
	})
}

// While Redis is away nobody is heard, which is nobody's silence.
func TestRedisAwayIsNoSilence(t *testing.T) {
	for name, fault := range map[string]func(*fakeInstance){
		"fails": func(s *fakeInstance) { s.Fail(errRedis) },
		"hangs": func(s *fakeInstance) { s.Block() },
		"slow":  func(s *fakeInstance) { s.Delay(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newFakeRegistry()
				a, b := join(t, g, "a"), join(t, g, "b")
				time.Sleep(5 * time.Second)
				b.publish(7, 10*time.Second)
				time.Sleep(time.Second)
				fault(a.store)
				fault(b.store)
				time.Sleep(10 * time.Minute)
				a.store.Heal() // ahead of b, whose last heartbeat is old
				time.Sleep(10 * time.Second)
				b.store.Heal()
				time.Sleep(time.Hour)
				require.Empty(t, told(a.logs))
				require.Zero(t, a.logs.FilterMessageSnippet("instance is").Len())
				require.LessOrEqual(t, a.logs.FilterMessage("instances cannot watch each other").Len(), 1)
				require.Empty(t, a.monitor.Health().Reasons)
			})
		})
	}
}

func TestHungInstanceIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newFakeRegistry()
		a, b := join(t, g, "a"), join(t, g, "b")
		for range 3 {
			b.publish(7, time.Minute)
		}
		time.Sleep(30 * time.Second)
		hang := make(chan struct{})
		b.do(func() { b.hang = hang })
		time.Sleep(time.Minute)
		require.Equal(t, []string{"b firing 3"}, told(a.logs))
		close(hang)
		time.Sleep(10 * time.Second)
		require.Equal(t, []string{"b firing 3", "b resolved <nil>"}, told(a.logs))
		require.Zero(t, b.queued())
	})
}

func TestQueuesAreNamedWhileTheyExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := newFakeBroker(t), newFakeRegistry().instance("b")
		b.publish(1, time.Hour)
		i := joinWith(t, b, store)
		time.Sleep(time.Second)
		require.Equal(t, "q1", store.named(1), "found at the start")
		i.publish(2, time.Hour)
		time.Sleep(time.Second)
		require.Equal(t, "q2", store.named(2))
		require.Zero(t, store.namelessCount(), "a name is there before what it is for")
		store.meddle(func(names map[uint64]scheduler.QueueName) {
			names[0] = scheduler.QueueName{Name: "deleted meanwhile"}
			delete(names, 2)
		})
		time.Sleep(2 * checkEvery)
		require.Empty(t, store.named(0))
		i.publish(2, time.Hour)
		time.Sleep(time.Second)
		require.Equal(t, "q2", store.named(2), "named again")

		store.flush()
		store.meddle(func(names map[uint64]scheduler.QueueName) { clear(names) })
		time.Sleep(2 * checkEvery)
		require.Equal(t, "q1", store.named(1), "rebuilt")
	})
}

// Redis does not answer when a queue is to be named: the schedule goes on without the name.
func TestNamesThatHangHarmNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := newFakeBroker(t), newFakeRegistry().instance("b")
		i := joinWith(t, b, store)
		time.Sleep(time.Second)
		store.meddle(func(map[uint64]scheduler.QueueName) { store.naming = make(chan struct{}) })
		m := i.publish(2, time.Hour)
		time.Sleep(2 * callTimeout)
		require.Empty(t, i.monitor.Health().Reasons)
		require.Zero(t, i.logs.FilterMessageSnippet("schedule down").Len())
		require.Equal(t, 1, i.logs.FilterMessageSnippet("queue names cannot be written").Len())
		require.True(t, store.mem.Has(m))
		close(store.naming)
	})
}

// Two loops write shadows: none of them goes on while the other names the queue.
func TestNoOneWritesBeforeTheNameIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeRegistry().instance("b")
		store.naming = make(chan struct{})
		n := newQueueNames(store, func(uint64) (string, string, bool) { return "/", "q", true }, zap.NewNop())
		var named [2]string
		for i := range named {
			go func() {
				n.note(t.Context(), []deadline.Ref{{Deadline: 1, Queue: 7, Seq: 1}})
				named[i] = store.named(7)
			}()
		}
		synctest.Wait()
		require.Equal(t, [2]string{}, named)
		close(store.naming)
		synctest.Wait()
		require.Equal(t, [2]string{"q", "q"}, named)
	})
}

func TestNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeRegistry().instance("b")
		i := joinWith(t, newFakeBroker(t), store)
		time.Sleep(time.Second)
		for queue := range uint64(maxNamed + 100) {
			i.publish(1+queue, time.Hour)
		}
		time.Sleep(time.Second)
		require.Equal(t, maxNamed, store.namedCount())
		i.monitor.redis.names.mu.Lock()
		defer i.monitor.redis.names.mu.Unlock()
		require.Len(t, i.monitor.redis.names.named, maxNamed)
	})
}

func TestPeerSeriesAreBounded(t *testing.T) {
	w := newWatcher(nil, Options{}, zap.NewNop())
	for i := range maxPeerSeries + 5 {
		w.peers[fmt.Sprintf("p%04d", i)] = &peer{silent: i > maxPeerSeries, overdue: scheduler.Overdue{Due: 2}}
	}
	reg := prometheus.NewRegistry()
	reg.MustRegister(w)
	require.Equal(t, 1.0, gather(t, reg, "curfew_instance_silent"))
	require.Equal(t, 10.0, gather(t, reg, "curfew_instance_due_deadlines", "peer", otherQueues))
	require.Equal(t, 2.0*(maxPeerSeries+5), gather(t, reg, "curfew_instance_due_deadlines"))
}

// What a consumer held past its deadline and gave back is late by its doing.
func TestConsumersLatenessIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(t)
		o, logs, reg := watchOptions(t, b)
		start(t, o)
		held := b.publish(7, time.Second)
		b.hold(held)
		time.Sleep(time.Minute)
		b.requeue(held)
		time.Sleep(2 * time.Second)
		require.Equal(t, int64(59_000_000), b.lateness(held))
		require.Equal(t, 1.0, gather(t, reg, "curfew_deadlines_fired_total", "path", "requeue"))
		require.Zero(t, gather(t, reg, "curfew_deadline_lateness_seconds"))
		require.Zero(t, gather(t, reg, "curfew_deadlines_failed_total"))
		require.Equal(t, 1, logs.FilterField(zap.String("event", "deadline_missed")).Len())
		require.Zero(t, logs.FilterField(zap.String("event", "deadline_fired_late")).Len())
	})
}

// startWatching is a monitor on a real server that watches more closely than usual.
func startWatching(t *testing.T, server *storetest.Redis, name string) (store *redisstore.Store, b *fakeBroker, logs *observer.ObservedLogs, stop func()) {
	t.Helper()
	store, err := redisstore.Open(redisstore.Options{URL: server.URL, Instance: name})
	require.NoError(t, err)
	b = newFakeBroker(t)
	o, logs, _ := watchOptions(t, b)
	o.Redis = store
	m, err := New(o)
	require.NoError(t, err)
	m.watcher.every, m.watcher.silentAfter, m.watcher.countEvery = 200*time.Millisecond, 4*time.Second, 200*time.Millisecond
	stop = run(t, m)
	require.Eventually(t, func() bool { return m.Health().Schedule == ScheduleUp }, time.Minute, 5*time.Millisecond)
	return store, b, logs, stop
}

func TestRealInstanceIsWatched(t *testing.T) {
	server := storetest.StartRedis(t)
	watching, _, logs, _ := startWatching(t, server, "watching")
	t.Cleanup(func() { _ = watching.Close() })
	eventually := func(what string, is func() bool) {
		t.Helper()
		require.Eventually(t, is, time.Minute, 10*time.Millisecond, what)
	}
	stored := func() int64 {
		overdue, err := watching.CountOverdue(t.Context(), scheduler.Peer{Name: "failing", Shards: 4})
		require.NoError(t, err)
		return overdue.Stored
	}
	leaving, _, _, stopLeaving := startWatching(t, server, "leaving")
	stopLeaving()
	require.NoError(t, leaving.Close())

	failing, b, _, stop := startWatching(t, server, "failing")
	b.publish(8, time.Hour)
	due := []scheduler.Later{{Ref: b.publish(7, time.Hour), At: 1}, {Ref: b.publish(7, time.Hour), At: 1}}
	eventually("written", func() bool { return stored() == 3 })
	stop()
	require.NoError(t, failing.Settle(t.Context(), nil, due)) // as if the hour had passed
	eventually("told", func() bool { return len(told(logs)) > 0 })
	require.Equal(t, 1, logs.FilterMessageSnippet(`2 in queue "q7" of vhost "/"`).Len())
	require.EqualValues(t, 3, stored(), "left as it is")

	require.NoError(t, failing.Beat(t.Context()))
	eventually("resolved", func() bool { return len(told(logs)) > 1 })
	require.Equal(t, []string{"failing firing 2", "failing resolved <nil>"}, told(logs)[:2])
	require.NoError(t, failing.Close())
	require.Zero(t, logs.FilterField(zap.String("peer", "leaving")).Len(), "it stopped gracefully")
}
