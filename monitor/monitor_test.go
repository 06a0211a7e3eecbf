package monitor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// ahead is a source whose clock is ahead of the wall clock. It is its own Pending, without a deadline.
type ahead struct {
	stream deadline.Stream
	by     time.Duration
	queues []deadline.Survey
}

func (a *ahead) Expiries() *deadline.Stream                              { return &a.stream }
func (a *ahead) Now() deadline.Instant                                   { return deadline.At(time.Now()).Add(a.by) }
func (a *ahead) ClockOffset() time.Duration                              { return a.by }
func (a *ahead) Waiting() (pending int64, nextAt deadline.Instant)       { return 0, 0 }
func (a *ahead) PendingBefore(_ []deadline.Instant, out []int64) []int64 { return out }
func (a *ahead) TimeToLive(deadline.Ref) (ttl deadline.Millis, ok bool)  { return 0, false }

func (a *ahead) Survey(_ int, fn func(*deadline.Survey)) {
	for i := range a.queues {
		a.queues[i].At = a.Now()
		fn(&a.queues[i])
	}
}

// TestInstantsOfReportsAreTheWallClocks: forecasts show the wall clock, though the source's own clock is ahead.
func TestInstantsOfReportsAreTheWallClocks(t *testing.T) {
	a := &ahead{by: 12 * time.Hour}
	now := a.Now()
	wall := now.Add(-a.by).UnixMilli()
	f := &forecaster{from: a}
	require.Equal(t, wall, f.wallMillis(now))
	require.Zero(t, f.wallMillis(0))
}

// TestOneNumberOfLate: what is counted as late is the same in the metric by reason and among the recent expiries: what left more than
// a second after its deadline, though no consumer held it and no user made it expire, whatever noticed it. What RabbitMQ itself let go late has a reason of its own.
func TestOneNumberOfLate(t *testing.T) {
	a, reg := &ahead{}, prometheus.NewRegistry()
	m, err := New(Options{Source: a, Pending: a, Registerer: reg})
	require.NoError(t, err)
	at := a.Now()
	for _, path := range []deadline.Path{deadline.Lazy, deadline.Requeued, deadline.Eager, deadline.Index, deadline.Stalled, deadline.Manual} {
		for _, after := range []time.Duration{300 * time.Millisecond, deadline.LateAfter, 2 * deadline.LateAfter} {
			a.stream.Publish([]deadline.Expiry{{Ref: deadline.Ref{Queue: 7, Deadline: at}, VHost: "/", Queue: "q", Path: path, Arrived: at.Add(after)}})
		}
	}
	a.stream.Publish([]deadline.Expiry{{Ref: deadline.Ref{Queue: 8, Deadline: at}, VHost: "/", Queue: "observed", Path: deadline.Lazy, Observed: true, Arrived: at.Add(2 * deadline.LateAfter)}})
	failed := map[string]float64{}
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != "curfew_deadlines_failed_total" {
			continue
		}
		for _, one := range f.GetMetric() {
			for _, label := range one.GetLabel() {
				if label.GetName() == "reason" {
					failed[label.GetValue()] += one.GetCounter().GetValue()
				}
			}
		}
	}
	require.Equal(t, map[string]float64{"late": 3, "stalled": 1, "rabbitmq": 1}, failed)
	late, lateness := int64(0), m.Lateness()
	for _, x := range m.RecentExpiries() {
		if x.Late {
			late += x.Count
		}
	}
	require.EqualValues(t, 4, late)
	var histogram uint64
	for i, n := range lateness.Counts {
		if lateness.IsLate(i) {
			histogram += n
		}
	}
	require.EqualValues(t, 4, histogram)
}

// TestAnObjectiveAmongManyQueues: what expires in a queue counts against its objective, in however many others messages expire. Of queues
// that are gone nothing is kept.
func TestAnObjectiveAmongManyQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		objective, err := deadline.ParseObjective("99% within 30s")
		require.NoError(t, err)
		a := &ahead{queues: []deadline.Survey{{Queue: 7, VHost: "/", Name: "q", Objective: objective}}}
		m, err := New(Options{Source: a, Pending: a})
		require.NoError(t, err)
		expire := func(queue uint64, name string) {
			a.stream.Publish([]deadline.Expiry{{Ref: deadline.Ref{Queue: queue, Deadline: a.Now()}, VHost: "/", Queue: name, Arrived: a.Now()}})
		}
		for range 10 {
			expire(7, "q")
		}
		m.forecaster.round()
		time.Sleep(time.Second)
		for other := range uint64(5000) {
			expire(100+other, "other")
		}
		expire(7, "q")
		waits := m.forecaster.round().waits
		require.InDelta(t, 1, waits[7].Missed, 0)
		require.Len(t, m.counters.expired, 1)
	})
}
