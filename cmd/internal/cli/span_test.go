package cli

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestTimesAreNotNegative: what is due is due now, or since some time.
func TestTimesAreNotNegative(t *testing.T) {
	past := time.Now().Add(-902 * time.Millisecond)
	assert.Equal(t, "now", Until(time.Now(), past))
	assert.Equal(t, "-", Until(time.Now(), time.Time{}))
	assert.Equal(t, "1m2s ago", Until(time.Now(), time.Now().Add(-62_900*time.Millisecond)))
	assert.Equal(t, "now", From(time.Now(), past))
	assert.Equal(t, "in 1h0m0s", From(time.Now(), time.Now().Add(time.Hour)))
	assert.Equal(t, "1.5s", Span(1500*time.Millisecond))
	assert.Equal(t, "1m31s", Span(90_700*time.Millisecond))
}
