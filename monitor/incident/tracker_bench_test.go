package incident

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

// BenchmarkJudge judges a state in which 5,000 queues are at risk.
func BenchmarkJudge(b *testing.B) {
	s, tracked := &State{}, &tracker{rules: []*rule{everything}}
	for n := range 5000 {
		s.Forecasts = append(s.Forecasts, atRisk(QueueName{"/", fmt.Sprintf("queue %d", n)}, 10))
	}
	now := time.Now()
	for b.Loop() {
		now = now.Add(time.Second)
		s.blame(s.Blamed)
		tracked.step(now, s)
	}
}

// TestLooksInProportion: ten times as many queues at risk and held, and tallies whose causes are gone, take ten times as long, and not a hundred times.
func TestLooksInProportion(t *testing.T) {
	now := time.Now()
	state := func(queues int) (s *State, over []Tally) {
		s = &State{Now: now, Consumers: map[QueueName]Consumers{}}
		for n := range queues {
			q := QueueName{"/", fmt.Sprintf("queue %05d", n)}
			s.Forecasts, s.Held = append(s.Forecasts, atRisk(q, 10)), append(s.Held, PastDeadline{QueueName: q, Count: 10})
		}
		for n := range queues / 10 {
			q := QueueName{"/", fmt.Sprintf("other %05d", n)}
			over = append(over, Tally{Event: Event{VHost: q.VHost, Queue: q.Name}, Last: now.Add(-mendedAfter)})
			s.Consumers[q] = Consumers{Count: 1, Came: now}
		}
		return s, over
	}
	mended := func(queues int) func() {
		s, over := state(queues)
		return func() {
			s.blame(nil)
			for n := range over {
				require.True(t, s.mended(&over[n]))
			}
		}
	}
	unconsumed := func(queues int) func() {
		s, _ := state(queues)
		s.blame(nil)
		unconsumed := ConditionOf("deadline_missed")
		return func() { require.Len(t, Evaluate(s)[unconsumed], queues) }
	}
	const few, more, slack = 1000, 10, 4
	testenv.InProportion(t, slack*more, "what is mended", mended(few), mended(more*few))
	testenv.InProportion(t, slack*more, "what is not consumed", unconsumed(few), unconsumed(more*few))
}
