package schedule

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// reschedule gives a message another deadline, so long from now.
func (b *fakeBroker) reschedule(s deadline.Ref, in time.Duration) deadline.Ref {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := s
	next.Deadline = b.Now().Add(in)
	b.messages[next] = b.messages[s]
	delete(b.messages, s)
	b.order = append(b.order, next)
	for _, v := range b.views {
		if v.tracked[s] {
			v.tracked[s] = false
			v.push(deadline.Event{Kind: deadline.Left, Ref: s})
		}
		v.push(deadline.Event{Kind: deadline.Changed, Ref: next})
	}
	return next
}

func TestRescheduledFireAtTheirNewDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newFakeBroker(t)
		m, _ := start(t, Options{Primary: b.view()})
		later, sooner := b.publish(1, time.Minute), b.publish(1, time.Hour)
		time.Sleep(time.Second)
		later, sooner = b.reschedule(later, 2*time.Minute), b.reschedule(sooner, time.Second)
		time.Sleep(10 * time.Millisecond)
		require.Equal(t, int64(2), m.Health().Pending)
		time.Sleep(time.Hour)
		require.Zero(t, b.lateness(later))
		require.Zero(t, b.lateness(sooner))
		require.Zero(t, m.Health().Pending)
	})
}

// A message that comes back to a deadline it had has its shadow removed and added
// under one name, in one batch or in several.
func TestRescheduledThereAndBack(t *testing.T) {
	withRedis(t, func(t *testing.T, b *fakeBroker, r *fakeRedis, m *Scheduler, reg *prometheus.Registry) {
		one, other := b.publish(1, 10*time.Second), b.publish(1, 10*time.Second)
		time.Sleep(time.Second)
		back := b.reschedule(b.reschedule(one, time.Hour), 9*time.Second)
		away := b.reschedule(other, time.Hour)
		time.Sleep(time.Second)
		again := b.reschedule(away, 8*time.Second)
		require.Equal(t, []deadline.Ref{one, other}, []deadline.Ref{back, again})
		time.Sleep(10 * time.Minute)
		require.Zero(t, b.lateness(one))
		require.Zero(t, b.lateness(other))
		require.Zero(t, gather(t, reg, "curfew_deadlines_fired_total", "path", "index"), "both were in Redis")
	})
}
