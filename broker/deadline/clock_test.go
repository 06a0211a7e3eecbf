package deadline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestUntilSecond(t *testing.T) {
	at := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for after, want := range map[time.Duration]time.Duration{
		0:                      time.Second,
		time.Millisecond:       999 * time.Millisecond,
		900 * time.Millisecond: 100 * time.Millisecond,
		999 * time.Millisecond: 1001 * time.Millisecond,
	} {
		assert.Equal(t, want, UntilSecond(at.Add(after)), "%s after the second", after)
	}
}
