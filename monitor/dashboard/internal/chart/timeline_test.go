package chart

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// deadlines are Unix ms.
type deadlines []int64

func (all deadlines) ahead(until, out []int64) []int64 {
	for _, at := range until {
		n := int64(0)
		for _, d := range all {
			if d <= at {
				n++
			}
		}
		out = append(out, n)
	}
	return out
}

func TestTimeline(t *testing.T) {
	const now = 1_000_000
	due := deadlines{now - 5, now + 1, now + 500, now + 30_000, now + 59_999, now + 3_600_000}
	line := NewTimeline(due.ahead, now, 6, "1 min")
	require.Equal(t, "1 min", line.Window)
	require.EqualValues(t, 1, line.Overdue)
	require.EqualValues(t, 4, line.Inside)
	require.EqualValues(t, 1, line.Later)
	require.Len(t, line.bars, timelineBars)
	require.EqualValues(t, 2, line.bars[0].count)
	require.Equal(t, timelineHeight, line.bars[0].height, "the largest fills it")
	require.Equal(t, "2 messages due in 0 ms to 1 s", line.bars[0].label)
	require.Zero(t, line.bars[1].height)
	require.EqualValues(t, 1, line.bars[59].count)
	require.Equal(t, []string{"now", "+15 s", "+30 s", "+45 s", "+1 min"}, []string{line.ticks[0], line.ticks[1], line.ticks[2], line.ticks[3], "+1 min"})

	require.Equal(t, "1 h", NewTimeline(due.ahead, now, 6, "").Window, "the least that has nine in ten")
	require.Equal(t, "7 d", NewTimeline(deadlines{}.ahead, now, 6, "").Window)
	require.Equal(t, "15 min", NewTimeline(deadlines{}.ahead, now, 0, "nonsense").Window)
}
