package deadline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadline"
)

func TestLongestForgets(t *testing.T) {
	var l deadline.Longest
	at := deadline.At(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	assert.Zero(t, l.Value(at))
	l.Add(at, 3*time.Millisecond)
	l.Add(at, 2*time.Millisecond)
	assert.Equal(t, 3*time.Millisecond, l.Value(at))
	at = at.Add(deadline.LongestWindow)
	l.Add(at, time.Millisecond)
	assert.Equal(t, 3*time.Millisecond, l.Value(at), "of the window before")
	at = at.Add(deadline.LongestWindow)
	assert.Equal(t, time.Millisecond, l.Value(at))
	at = at.Add(2 * deadline.LongestWindow)
	assert.Zero(t, l.Value(at))
}
