package monitor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecentExpiriesAreBounded(t *testing.T) {
	var x counters
	for i := range 3 * recentMost {
		x.recent.add(RecentExpiry{At: int64(i) * 2000, Queue: "q", Count: 1})
	}
	m := &Monitor{counters: &x}
	require.Len(t, m.RecentExpiries(), recentMost)
	require.EqualValues(t, (3*recentMost-1)*2000, m.RecentExpiries()[0].At)
	for i := range 100 { // interleaved queues of one second
		x.recent.add(RecentExpiry{At: 10_000_000, Queue: string(rune('a' + i%2)), Count: 1})
	}
	require.EqualValues(t, 50, m.RecentExpiries()[0].Count)
	require.EqualValues(t, 50, m.RecentExpiries()[1].Count)
}
