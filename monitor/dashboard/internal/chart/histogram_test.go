package chart

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/monitor"
)

func TestHistogram(t *testing.T) {
	h := NewHistogram(monitor.Lateness{UpTo: []int64{1, 10, 1000, 5000}, Counts: []uint64{900, 90, 0, 9, 1}})
	require.EqualValues(t, 1000, h.Total)
	require.EqualValues(t, 10, h.late)
	require.Equal(t, "≤ 1 ms", h.half)
	require.Equal(t, "≤ 10 ms", h.Most)
	require.Equal(t, 100, h.rows[0].width)
	require.Zero(t, h.rows[2].width)
	require.True(t, h.rows[3].late)
	require.Equal(t, "later", h.rows[4].label)
}
