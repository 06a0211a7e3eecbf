package monitor

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestQueueNameThatIsNotText: its expiries are counted. Prometheus takes no such label, and would stop whoever fires.
func TestQueueNameThatIsNotText(t *testing.T) {
	fired := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "fired"}, []string{"vhost", "queue", "action", "path"})
	c := &counters{
		queueName: func(uint64) (vhost, name string, ok bool) { return "/", "a\xff", true },
		fired:     fired, byID: map[uint64]*queueCounters{}, labels: map[[2]string]struct{}{},
	}
	c.countFired(c.of(1, "", ""), deadline.DeadLettered, deadline.Eager, 3)
	reg := prometheus.NewRegistry()
	reg.MustRegister(fired)
	families, err := reg.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	require.Equal(t, 3.0, families[0].GetMetric()[0].GetCounter().GetValue())
	require.EqualValues(t, 3, c.expiredOf(1))
}
