package schedule

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/integration/testenv"
	"curfew/monitor"
	"curfew/scheduler/redisstore"
)

// realRun is a monitor with a Redis server of its own, in real time.
type realRun struct {
	*fakeBroker
	monitor  *Scheduler
	server   *testenv.Redis
	store    *redisstore.Store
	registry *prometheus.Registry
}

func startReal(t *testing.T) realRun {
	t.Helper()
	run := realRun{fakeBroker: newFakeBroker(t), server: testenv.StartRedis(t), registry: prometheus.NewRegistry()}
	var err error
	run.store, err = redisstore.Open(redisstore.Options{URL: run.server.URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = run.store.Close() })
	run.monitor, _ = start(t, Options{Primary: run.view(), Redis: run.store, Registerer: run.registry})
	run.eventually(t, "up", run.up)
	return run
}

func (r realRun) up() bool { return r.monitor.Health().Schedule == monitor.ScheduleUp }

func (r realRun) eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	require.Eventually(t, is, time.Minute, 5*time.Millisecond, what)
}

// stored are the shadows Redis has.
func (r realRun) stored(t *testing.T) map[deadline.Ref]bool {
	t.Helper()
	all := make(map[deadline.Ref]bool)
	require.NoError(t, r.store.Scan(context.Background(), func(page []deadline.Ref) error {
		for _, s := range page {
			all[s] = true
		}
		return nil
	}))
	return all
}

// publishMany enqueues n messages that expire within spread from now.
func (r realRun) publishMany(n int, spread time.Duration) (all []deadline.Ref) {
	for range n {
		all = append(all, r.publish(1+rand.Uint64N(3), rand.N(spread)))
	}
	return all
}

func TestRealRedisFires(t *testing.T) {
	run := startReal(t)
	all := run.publishMany(2000, 1500*time.Millisecond)
	far := run.publish(1, time.Hour)
	run.eventually(t, "only the far one is left", func() bool { return run.queued() == 1 })
	run.eventually(t, "Redis follows", func() bool {
		stored := run.stored(t)
		return len(stored) == 1 && stored[far]
	})
	for _, s := range all {
		require.GreaterOrEqual(t, run.lateness(s), int64(0))
	}
	require.Positive(t, gather(t, run.registry, "curfew_shadow_writes_total", "op", "add", "result", "ok"))
	require.Positive(t, gather(t, run.registry, "curfew_deadlines_fired_total", "path", "eager"))
	require.Equal(t, 2000.0, gather(t, run.registry, "curfew_deadlines_fired_total"))
}

// evict has the server drop the schedule to make room for somebody's cache.
func evict(r *testenv.Redis) {
	r.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-random")
	r.Do("CONFIG", "SET", "maxmemory", "4mb")
	value := strings.Repeat("x", 10_000)
	for i := range 2000 {
		r.Do("SET", fmt.Sprint("cache:", i), value)
	}
}

// TestRealRedisTroubled does something to the server while deadlines come, and then
// looks whether everything fired and the schedule is whole again.
func TestRealRedisTroubled(t *testing.T) {
	for name, trouble := range map[string]struct{ begin, end func(*testenv.Redis) }{
		"killed and started empty": {(*testenv.Redis).Kill, (*testenv.Redis).Restart},
		"stopped":                  {(*testenv.Redis).Pause, (*testenv.Redis).Resume},
		"flushed":                  {func(r *testenv.Redis) { r.Do("FLUSHALL") }, func(*testenv.Redis) {}},
		"evicted by a cache": {evict, func(r *testenv.Redis) {
			r.Do("CONFIG", "SET", "maxmemory", "0")
			r.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
		}},
		"out of memory": {
			func(r *testenv.Redis) { r.Do("CONFIG", "SET", "maxmemory", "1") },
			func(r *testenv.Redis) { r.Do("CONFIG", "SET", "maxmemory", "0") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := startReal(t)
			all := run.publishMany(1000, 3*time.Second)
			far := []deadline.Ref{run.publish(1, time.Hour)}
			run.eventually(t, "a part has fired", func() bool { return run.queued() < 800 })
			trouble.begin(run.server)
			all = append(all, run.publishMany(200, 3*time.Second)...)
			far = append(far, run.publish(1, time.Hour))
			run.eventually(t, "all have fired", func() bool { return run.queued() == 2 })
			trouble.end(run.server)
			far = append(far, run.publish(1, time.Hour))
			run.eventually(t, "up", run.up)
			run.eventually(t, "Redis follows", func() bool {
				stored := run.stored(t)
				return len(stored) == 3 && stored[far[0]] && stored[far[1]] && stored[far[2]]
			})
			for _, s := range all {
				require.GreaterOrEqual(t, run.lateness(s), int64(0))
			}
			require.Equal(t, 1200.0, gather(t, run.registry, "curfew_deadlines_fired_total"))
		})
	}
}
