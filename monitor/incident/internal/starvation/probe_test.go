package starvation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWithin: what was longer ago does not count.
func TestWithin(t *testing.T) {
	var p Probe
	now := time.Now()
	p.times = []starved{{now.Add(-2 * time.Minute), time.Hour}, {now.Add(-time.Second), time.Second}, {now, 400 * time.Millisecond}}
	require.Equal(t, 1400*time.Millisecond, p.Within(time.Minute, now))
	require.Equal(t, 400*time.Millisecond, p.Within(time.Minute, now.Add(59500*time.Millisecond)))
}
