package monitor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
)

// TestHeldPastDeadlines: the metric has what consumers hold now, each message once however long that lasts, and not what they gave back.
func TestHeldPastDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		start(t, Options{Primary: b.view(), Registerer: reg})
		held := func() float64 { return gather(t, reg, "curfew_deadlines_held", "vhost", "/", "queue", "q7") }
		first, second := b.publish(7, 10*time.Second), b.publish(7, 20*time.Second)
		b.hold(first)
		b.hold(second)
		time.Sleep(9 * time.Second)
		require.Zero(t, held(), "before their deadlines")
		time.Sleep(12 * time.Second)
		require.Equal(t, 2.0, held())
		for range 5 {
			time.Sleep(time.Minute)
			require.Equal(t, 2.0, held(), "each is looked at again and again, and counts once")
		}
		next := func() float64 { return gather(t, reg, "curfew_deadline_next_timestamp_seconds") }
		require.Zero(t, next(), "to look at them again is no deadline")
		third := b.publish(7, time.Hour)
		time.Sleep(time.Second)
		require.Equal(t, float64(third.Deadline)/1e6, next())
		b.ack(third)
		b.ack(first)
		time.Sleep(2 * heldAfter)
		require.Equal(t, 1.0, held())
		b.requeue(second)
		time.Sleep(2 * heldAfter)
		require.Zero(t, held())
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			require.NotEqual(t, "curfew_deadlines_held", f.GetName(), "a queue without any is not listed for long")
		}
	})
}
