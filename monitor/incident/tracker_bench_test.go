package incident

import (
	"fmt"
	"testing"
	"time"
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
