package ui

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
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
	require.False(t, h.rows[2].late, "a bucket up to the limit")
	require.Equal(t, "later", h.rows[4].label)
}

// TestHistogramGoesByTheMonitor: which messages are late, and what is more than all bounds, is what the monitor and its buckets say.
func TestHistogramGoesByTheMonitor(t *testing.T) {
	from := deadline.LateAfter.Milliseconds()
	var page strings.Builder
	require.NoError(t, NewHistogram(monitor.Lateness{UpTo: []int64{from / 2, from, 2 * from}, Counts: []uint64{1, 2, 4, 800}}).Draw("in 1 h").Render(&page))
	require.Contains(t, page.String(), "804 messages expired more than "+Span(deadline.LateAfter)+" late.")
	require.Contains(t, page.String(), "more than "+Span(2*deadline.LateAfter)+"</b>")
}
