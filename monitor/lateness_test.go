package monitor

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
	"curfew/monitor/incident"
)

// events are what a monitor has recorded. Safe for concurrent use.
type events struct {
	mu  sync.Mutex
	all []incident.Event
}

func (e *events) record(one incident.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, one)
}

// counts are the messages by what happened and queue.
func (e *events) counts() map[string]int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	sums := make(map[string]int64)
	for _, one := range e.all {
		what := map[incident.Kind]string{incident.Expired: "expired", incident.ExpiredLate: "late", incident.Parked: "parked"}[one.Kind]
		sums[what+" "+one.Queue] += one.Count
	}
	return sums
}

// TestIntendedExpiriesAreNotMissed: what expires because it was there for that is counted, and told when it was late or had nowhere to go.
func TestIntendedExpiriesAreNotMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told events
		b, reg := newFakeBroker(t), prometheus.NewRegistry()
		v := b.view()
		start(t, Options{Primary: v, Registerer: reg, Record: told.record})
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
		require.Equal(t, map[string]int64{"expired q7": 1, "late q7": 1, "parked q7": 1}, told.counts())
		require.Equal(t, 4.0, gather(t, reg, "curfew_deadlines_fired_total", "vhost", "/", "queue", "q7", "action", "dead_lettered", "path", "eager"))
	})
}

// What a consumer held past its deadline and gave back is late by its doing.
func TestConsumersLatenessIsNotOurs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(t)
		var told events
		reg := prometheus.NewRegistry()
		start(t, Options{Primary: b.view(), Record: told.record, Registerer: reg})
		held := b.publish(7, time.Second)
		b.hold(held)
		time.Sleep(time.Minute)
		b.requeue(held)
		time.Sleep(2 * time.Second)
		require.Equal(t, int64(59_000_000), b.lateness(held))
		require.Equal(t, 1.0, gather(t, reg, "curfew_deadlines_fired_total", "path", "requeue"))
		require.Zero(t, gather(t, reg, "curfew_deadline_lateness_seconds"))
		require.Zero(t, gather(t, reg, "curfew_deadlines_failed_total"))
		require.Equal(t, map[string]int64{"expired q7": 1}, told.counts())
	})
}
