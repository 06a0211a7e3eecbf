package rabbitmq

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/keeper"
)

// TestMetrics: the metrics show held messages, refused queues and lateness, and the number of series is bounded.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a", "keep-b", "other")
		rabbitmq.setPolicy("keep-b", map[string]any{"expires": int64(1000)})
		r := newRunning(t, rabbitmq, "one", nil).start()
		time.Sleep(time.Second)
		k := r.keeper("keep-a")
		k.change(func(s *keeper.Status) { s.Held, s.HeldBytes, s.Counts.UnknownAge = 7, 700, 3 })
		k.o.Expired([]keeper.Expiry{{Deadline: 1_000_000, GivenBack: 1_004_000}})
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(r.Primary)
		values := map[string]float64{}
		families, err := registry.Gather()
		require.NoError(t, err)
		for _, family := range families {
			for _, m := range family.GetMetric() {
				key := family.GetName()
				for _, l := range m.GetLabel() {
					key += " " + l.GetValue()
				}
				values[key] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetHistogram().GetSampleSum()
			}
		}
		for key, want := range map[string]float64{
			"curfew_rabbitmq_queues keep keeping": 1, "curfew_rabbitmq_queues keep refused": 1, "curfew_rabbitmq_queues observe observed": 1,
			"curfew_rabbitmq_queue_not_kept keep-b expires shop": 1, "curfew_rabbitmq_held_messages keep-a shop": 7,
			"curfew_rabbitmq_expiry_intended keep-a shop": 1, "curfew_rabbitmq_expiry_intended keep-b shop": 1,
			"curfew_rabbitmq_held_bytes keep-a shop": 700, "curfew_rabbitmq_leases": 1, "curfew_rabbitmq_unknown_age_total": 3,
			"curfew_rabbitmq_kept_lateness_seconds": 0.004, "curfew_rabbitmq_observer_lag_seconds shop": 0,
		} {
			require.Contains(t, values, key)
			require.InDelta(t, want, values[key], 1e-9, key)
		}
		require.NotContains(t, values, "curfew_rabbitmq_expiry_intended other shop")
		problems, err := testutil.GatherAndLint(registry)
		require.NoError(t, err)
		require.Empty(t, problems)

		for i := range 2 * maxQueues {
			r.counts.releases.WithLabelValues("shop", r.counts.label(fmt.Sprint(i)), "stop").Inc()
		}
		require.LessOrEqual(t, testutil.CollectAndCount(r.counts.releases), maxQueues+1)
		_, err = registry.Gather()
		require.NoError(t, err)
		require.Equal(t, "keep-c", r.counts.label("keep-c"), "those queues are gone")
		require.Equal(t, 1, testutil.CollectAndCount(r.counts.releases))
	})
}
