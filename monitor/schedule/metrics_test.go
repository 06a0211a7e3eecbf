package schedule

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// gather adds up the series of a metric that have the given labels (name, value...).
func gather(t *testing.T, reg *prometheus.Registry, name string, labels ...string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			has := make(map[string]string)
			for _, l := range m.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			match := true
			for i := 0; i < len(labels); i += 2 {
				match = match && has[labels[i]] == labels[i+1]
			}
			if match {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

func errorOf(reasons []string) error { return errors.New(strings.Join(reasons, "; ")) }

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		b.action = deadline.Parked
		overdue := b.publish(7, time.Second)
		time.Sleep(4 * time.Second)
		start(t, Options{Primary: b.view(), Registerer: reg})
		spared := b.publish(7, time.Hour)
		time.Sleep(time.Millisecond)
		b.ack(spared)
		next := b.publish(7, time.Hour)
		held := b.publish(7, time.Second)
		b.hold(held)
		time.Sleep(1500 * time.Millisecond)
		b.requeue(held)
		time.Sleep(time.Second)

		require.Equal(t, int64(3_000_000), b.lateness(overdue))
		require.Equal(t, 1.0, gather(t, reg, "curfew_deadlines_fired_total",
			"vhost", "/", "queue", "q7", "action", "parked", "path", "eager"))
		require.Equal(t, 1.0, gather(t, reg, "curfew_deadlines_fired_total", "queue", "q7", "path", "requeue"))
		require.Equal(t, 1.0, gather(t, reg, "curfew_deadlines_failed_total", "queue", "q7", "reason", "late"))
		require.Equal(t, 2.0, gather(t, reg, "curfew_deadlines_failed_total", "queue", "q7", "reason", "parked"))
		require.Equal(t, 3.0, gather(t, reg, "curfew_deadlines_failed_total"))
		require.Equal(t, 1.0, gather(t, reg, "curfew_deadline_lateness_seconds"), "not the requeued one")
		require.Equal(t, 1.0, gather(t, reg, "curfew_fire_results_total", "outcome", "held"))
		require.Equal(t, 1.0, gather(t, reg, "curfew_shadows_spared_total"))
		require.Equal(t, 1.0, gather(t, reg, "curfew_deadlines_pending"))
		require.Equal(t, float64(next.Deadline)/1e6, gather(t, reg, "curfew_deadline_next_timestamp_seconds"))
		require.InDelta(t, float64(b.Now())/1e6,
			gather(t, reg, "curfew_scheduler_last_tick_timestamp_seconds", "loop", "fire"), 1.1)
	})
}

func TestQueueSeriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		start(t, Options{Primary: b.view(), Registerer: reg})
		const maxQueues = 500 // of the monitor
		const queues = maxQueues + 10
		b.do(func() {
			for q := range uint64(queues) {
				b.enqueue(deadline.Ref{Deadline: b.Now() + 1_000_000, Queue: q})
			}
		})
		time.Sleep(2 * time.Second)
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "curfew_deadlines_fired_total" {
				require.Len(t, f.GetMetric(), maxQueues+1)
			}
		}
		require.Equal(t, float64(queues), gather(t, reg, "curfew_deadlines_fired_total"))
		require.Equal(t, float64(queues-maxQueues), gather(t, reg, "curfew_deadlines_fired_total", "queue", "_other"))
	})
}
