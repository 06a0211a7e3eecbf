package incident

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestStarvedWithin: what was longer ago does not count.
func TestStarvedWithin(t *testing.T) {
	var p probe
	now := time.Now()
	p.times = []starved{{now.Add(-2 * time.Minute), time.Hour}, {now.Add(-time.Second), time.Second}, {now, 400 * time.Millisecond}}
	require.Equal(t, 1400*time.Millisecond, p.within(time.Minute, now))
	require.Equal(t, 400*time.Millisecond, p.within(time.Minute, now.Add(59500*time.Millisecond)))
}
