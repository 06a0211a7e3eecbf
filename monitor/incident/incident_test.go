package incident

import (
	"fmt"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestFindingsDoNotKeepTheState of their second, which has all queues: incidents keep them for long.
func TestFindingsDoNotKeepTheState(t *testing.T) {
	found, state := func() (map[*Condition][]Finding, weak.Pointer[State]) {
		f := atRisk(orders, 40)
		f.Rate = 1
		s := &State{Now: time.Now(), Forecasts: []deadline.Forecast{f}, Objectives: []Missed{{QueueName: orders}}, Slow: func(q QueueName) Slow { return Slow{Who: q.Name, Out: 2} }}
		s.blame(nil)
		return Evaluate(s), weak.Make(s)
	}()
	runtime.GC()
	require.Nil(t, state.Value())
	for name, out := range map[string]float64{"deadline_missed": 1, "objective_missed": 2} {
		require.Equal(t, Slow{Who: "orders", Out: out}, found[ConditionOf(name)][0].slow(), name)
	}
}

// TestNothingThatWasLostIsForgotten, though more queues are well again than an incident keeps.
func TestNothingThatWasLostIsForgotten(t *testing.T) {
	now := time.Now()
	i := &incident{of: ConditionOf("deadline_missed"), members: make(map[QueueName]Finding), left: make(map[string]bool)}
	lose := func(queue string, lost int64) {
		i.add(Finding{QueueName: QueueName{"/", queue}, Left: fmt.Sprint("worker", queue, lost), Toll: lost, Lost: lost}, now)
	}
	const queues = maxMembers * 3 / 2
	for n := range queues {
		lose(fmt.Sprint(n), 1)
	}
	i.refresh(now)
	require.EqualValues(t, queues, i.Lost)
	for lost := int64(1); lost < 1000; lost += 100 {
		now = now.Add(10 * time.Minute)
		lose("0", lost)
		i.refresh(now)
		require.EqualValues(t, queues-1+lost, i.Lost)
		require.LessOrEqual(t, len(i.members), maxMembers)
	}
	i.refresh(now)
	require.Len(t, i.left, len(i.members))
	require.True(t, i.left["worker0901"])
}
