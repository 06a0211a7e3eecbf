package monitor

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// ahead is a source whose clock is ahead of the wall clock. It is its own Pending, without a deadline.
type ahead struct {
	stream deadline.Stream
	by     time.Duration
}

func (a *ahead) Expiries() *deadline.Stream                              { return &a.stream }
func (a *ahead) Now() deadline.Instant                                   { return deadline.At(time.Now()).Add(a.by) }
func (a *ahead) ClockOffset() time.Duration                              { return a.by }
func (a *ahead) Waiting() (pending int64, nextAt deadline.Instant)       { return 0, 0 }
func (a *ahead) PendingBefore(_ []deadline.Instant, out []int64) []int64 { return out }

// TestInstantsOfReportsAreTheWallClocks: alerts and forecasts show the wall clock, though the source's own clock is ahead.
func TestInstantsOfReportsAreTheWallClocks(t *testing.T) {
	a := &ahead{by: 12 * time.Hour}
	m, err := New(Options{Source: a, Pending: a})
	require.NoError(t, err)
	now := a.Now()
	wall := now.Add(-a.by).UnixMilli()
	h := m.NewHolds()
	h.Add(deadline.Ref{Queue: 7, Deadline: now}, now)
	require.Equal(t, wall, h.first.FirstDeadlineAt)
	f := &forecaster{offset: a.ClockOffset}
	require.Equal(t, wall, f.wallMillis(now))
	require.Zero(t, f.wallMillis(0))
}

// TestOneNumberOfLate: what is counted as late is the same in the metric by reason and among the recent expiries: what left more than
// a second after its deadline, though no consumer held it and no user made it expire, whatever noticed it.
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
	require.Equal(t, map[string]float64{"late": 3, "stalled": 1}, failed)
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
