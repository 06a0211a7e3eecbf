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
		s.AtRisk = append(s.AtRisk, Risk{QueueName: QueueName{"/", fmt.Sprintf("queue %d", n)}, Count: 10, Reason: "nobody consumes"})
	}
	now := time.Now()
	for b.Loop() {
		now = now.Add(time.Second)
		tracked.step(now, Evaluate(s))
	}
}

// TestMendedAtTheCeilings: as many tallies as there may be, whose causes are gone, while 10,000 queues are at risk and 10,000 are held.
func TestMendedAtTheCeilings(t *testing.T) {
	now, s := time.Now(), &State{Consumers: map[QueueName]Consumers{}}
	s.Now = now
	for n := range 10_000 {
		q := QueueName{"/", fmt.Sprintf("queue %05d", n)}
		s.AtRisk, s.Held = append(s.AtRisk, Risk{QueueName: q, Count: 10}), append(s.Held, PastDeadline{QueueName: q, Count: 10})
	}
	var over []Tally
	for n := range maxTallies {
		q := QueueName{"/", fmt.Sprintf("other %05d", n)}
		over = append(over, Tally{Event: Event{VHost: q.VHost, Queue: q.Name}, Last: now.Add(-mendedAfter)})
		s.Consumers[q] = Consumers{Count: 1, Came: now}
	}
	testenv.Quick(t, 50*time.Millisecond, "a look at what is mended", func() {
		s.blame(nil)
		for n := range over {
			require.True(t, s.mended(&over[n]))
		}
	})
	s.Blamed = nil
	testenv.Quick(t, 100*time.Millisecond, "a look at what is not consumed", func() { require.Len(t, seeUnconsumed(s), 10_000) })
}
