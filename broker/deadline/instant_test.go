package deadline_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadline"
)

func TestConversionsRoundUp(t *testing.T) {
	for micros, want := range map[deadline.Instant]int64{
		0: 0, 1: 1, 999: 1, 1000: 1, 1001: 2, -1: 0, -1000: -1, -1001: -1,
		1_795_217_348_123_456: 1_795_217_348_124, math.MaxInt64: math.MaxInt64/1000 + 1,
	} {
		assert.Equal(t, want, micros.UnixMilli(), int64(micros))
	}
	for d, want := range map[time.Duration]deadline.Millis{0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, -time.Millisecond - 1: -1} {
		assert.Equal(t, want, deadline.RoundUp(d), d)
	}
	for d, want := range map[time.Duration]deadline.Instant{0: 50, 1: 51, time.Microsecond: 51, 1001: 52, -1: 50, -time.Microsecond: 49} {
		assert.Equal(t, want, deadline.Instant(50).Add(d), d)
	}
}

func TestInstants(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 123_456_789, time.UTC)
	i := deadline.At(at)
	assert.Equal(t, "2026-03-01T12:00:00.123456Z", i.String(), "the present is rounded down")
	assert.True(t, at.Truncate(time.Microsecond).Equal(i.Time()))
	assert.Equal(t, 1500*time.Millisecond, i.AddMillis(1500).Sub(i))
	assert.Equal(t, i, i.Add(time.Hour).Add(-time.Hour))
	assert.Equal(t, 1500*time.Millisecond, deadline.Millis(1500).Duration())

	last := deadline.FromUnixMilli(math.MaxInt64)
	assert.LessOrEqual(t, deadline.Instant(math.MaxInt64-1000), last)
	assert.Greater(t, deadline.Instant(math.MinInt64+1000), deadline.FromUnixMilli(math.MinInt64))
	assert.Equal(t, int64(1_700_000_000_123), deadline.FromUnixMilli(1_700_000_000_123).UnixMilli())
}
