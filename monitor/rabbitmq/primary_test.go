package rabbitmq

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

var (
	_ monitor.Source  = (*Primary)(nil)
	_ monitor.Pending = (*Primary)(nil)
)

// TestBehindAMonitor: a monitor counts the expiries here, and shows the deadlines to come.
func TestBehindAMonitor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rabbitmq := newFakeRabbitMQ(t)
		rabbitmq.declare("keep-a")
		r := newRunning(t, rabbitmq, "one", nil)
		registry := prometheus.NewRegistry()
		m, err := monitor.New(monitor.Options{Source: r.Primary, Pending: r.Primary, Registerer: registry})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		r.start()
		time.Sleep(time.Second)
		now := r.Now()
		k := r.keeper("keep-a")
		k.change(func(s *keeper.Status) { s.Held, s.WithoutTTL, s.NextDue = 5, 1, now.Add(time.Minute) })
		k.o.Expired([]keeper.Expiry{{Deadline: now, GivenBack: now.Add(3 * time.Millisecond)}})

		h := m.Health()
		require.EqualValues(t, 4, h.Pending)
		require.Equal(t, monitor.ScheduleOfPrimary, h.Schedule)
		require.Zero(t, h.Lag)
		require.Empty(t, h.Reasons)
		require.Equal(t, []int64{5, 5}, m.PendingBefore([]int64{1, 2}, nil))
		missed := m.RecentExpiries()
		require.Len(t, missed, 1)
		require.Equal(t, monitor.RecentExpiry{At: missed[0].At, VHost: "shop", Queue: "keep-a", Action: "dead_lettered", Path: "eager", Count: 1, WorstMillis: 3}, missed[0])
		late := m.Lateness()
		require.EqualValues(t, 1, late.Total())
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestOffset: a step of the wall clock counts, and not what else the processor did between two readings.
func TestOffset(t *testing.T) {
	at := deadline.FromUnixMilli(1e12)
	for _, c := range []struct {
		name              string
		wall, after, want time.Duration
	}{
		{"the same", 0, 0, time.Second},
		{"put off before the wall clock is read", 60 * time.Millisecond, 60 * time.Millisecond, time.Second},
		{"put off after that", 0, 60 * time.Millisecond, time.Second},
		{"slewed", 9 * time.Millisecond, 0, time.Second},
		{"set back", -time.Minute, time.Millisecond, time.Second + time.Minute + time.Millisecond},
		{"set forward", time.Minute, 0, time.Second - time.Minute},
		{"set while the processor did something else", time.Minute, 60 * time.Millisecond, time.Second},
	} {
		require.Equal(t, c.want, offset(time.Second, at, at.Add(c.wall-time.Second), at.Add(c.after)), c.name)
	}
}

// TestOptions: an error names a missing option, and options that are left out have defaults.
func TestOptions(t *testing.T) {
	_, err := New(Options{})
	require.Error(t, err)
	c, err := cluster.Open(cluster.Options{URL: "amqp://u:p@rabbit/shop"})
	require.NoError(t, err)
	registry := prometheus.NewRegistry()
	p, err := New(Options{Cluster: c, Registerer: registry})
	require.NoError(t, err)
	require.Equal(t, "curfew", p.Status().Instance)
	require.Equal(t, "none", p.Status().Redis)
	require.NotContains(t, p.Status().Address, ":p@")
	_, err = New(Options{Cluster: c, Registerer: registry})
	require.Error(t, err, "the metrics are registered already")
}
