package monitor

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestQueueNameThatIsNotText: its expiries are counted. Prometheus takes no such label, and would stop whoever fires.
func TestQueueNameThatIsNotText(t *testing.T) {
	a, reg := &ahead{}, prometheus.NewRegistry()
	_, err := New(Options{Source: a, Pending: a, Registerer: reg})
	require.NoError(t, err)
	a.stream.Publish([]deadline.Expiry{{VHost: "/", Queue: "a\xff", Action: deadline.DeadLettered, Path: deadline.Eager}})
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == "curfew_deadlines_fired_total" {
			require.Equal(t, 1.0, f.GetMetric()[0].GetCounter().GetValue())
			return
		}
	}
	t.Error("not counted")
}
