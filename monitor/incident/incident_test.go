package incident

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

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
