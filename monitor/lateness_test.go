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
)

// TestIntendedExpiriesAreNotMissed: what expires because it was there for that is counted, and told when it was late or had nowhere to go.
func TestIntendedExpiriesAreNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		alerts, err := alert.New(alert.Options{Log: zap.New(core)})
		require.NoError(t, err)
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		v := b.view()
		start(t, Options{Primary: v, Registerer: reg, Alerts: alerts})
		at := deadline.At(time.Now())
		expire := func(intended bool, action deadline.Action, late time.Duration) deadline.Expiry {
			return deadline.Expiry{Ref: deadline.Ref{Deadline: at, Queue: 7}, VHost: "/", Queue: "q7", Path: deadline.Eager, Action: action,
				Arrived: at.Add(late), Intended: intended}
		}
		v.Expiries().Publish([]deadline.Expiry{
			expire(true, deadline.DeadLettered, time.Millisecond),
			expire(false, deadline.DeadLettered, time.Millisecond),
			expire(true, deadline.DeadLettered, time.Millisecond),
			expire(true, deadline.DeadLettered, time.Minute),
			expire(true, deadline.Parked, time.Millisecond),
		})
		time.Sleep(time.Minute)
		told := make(map[string]any)
		for _, line := range logs.All() {
			if fields := line.ContextMap(); fields["event"] != nil && fields["status"] == "firing" {
				told[fmt.Sprint(fields["event"])] = fields["count"]
			}
		}
		require.Equal(t, map[string]any{"deadline_missed": int64(1), "deadline_fired_late": int64(1), "dead_letter_unroutable": int64(1)}, told)
		require.Equal(t, 4.0, gather(t, reg, "curfew_deadlines_fired_total", "vhost", "/", "queue", "q7", "action", "dead_lettered", "path", "eager"))
	})
}

// What a consumer held past its deadline and gave back is late by its doing.
func TestConsumersLatenessIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(t)
		core, logs := observer.New(zap.InfoLevel)
		alerts, err := alert.New(alert.Options{Log: zap.New(core)})
		require.NoError(t, err)
		reg := prometheus.NewRegistry()
		start(t, Options{Primary: b.view(), Alerts: alerts, Registerer: reg})
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
