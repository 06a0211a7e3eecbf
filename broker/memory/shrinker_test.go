package memory

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestMemoryIsCollectedForManyQueues: also where they become idle a few at a time.
func TestMemoryIsCollectedForManyQueues(t *testing.T) {
	var x Shrinker
	collected := 0
	for range 10 * collectAfter / 300 {
		if x.due(300) {
			collected++
		}
	}
	assert.Equal(t, 8, collected, "every fourth time")
	assert.True(t, x.due(collectAfter))
	assert.False(t, x.due(0))
}
