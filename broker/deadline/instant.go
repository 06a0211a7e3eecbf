package deadline

import (
	"math"
	"time"
)

// Instant is a point in time in Unix microseconds. 0 means none: no deadline, never.
// Two instants are compared with < and ==.
type Instant int64

// micros is the number of microseconds in a millisecond.
const micros = 1000

// At is the instant that t has reached: t rounded down to a microsecond.
func At(t time.Time) Instant { return Instant(t.UnixMicro()) }

// FromUnixMilli is the instant at which a clock shows ms since 1970. A value that does not fit
// gives the first or the last possible instant.
func FromUnixMilli(ms int64) Instant {
	return Instant(min(max(ms, math.MinInt64/micros), math.MaxInt64/micros) * micros)
}

// UnixMilli is the instant in Unix ms, as people and protocols see it. It is rounded up, so
// that nothing happens before the instant that is shown.
func (i Instant) UnixMilli() int64 { return ceil(int64(i), micros) }

// Time is the instant as a time.Time.
func (i Instant) Time() time.Time { return time.UnixMicro(int64(i)) }

// Add is the instant d later, rounded up to a microsecond. It does not check for overflow.
func (i Instant) Add(d time.Duration) Instant {
	return i + Instant(ceil(int64(d), int64(time.Microsecond)))
}

// AddMillis is the instant ms later. It does not check for overflow.
func (i Instant) AddMillis(ms Millis) Instant { return i + Instant(ms*micros) }

// Sub is the time from o to i. It is exact for two instants that are less than 292 years
// apart, as all instants in a schedule are.
func (i Instant) Sub(o Instant) time.Duration { return time.Duration(i-o) * time.Microsecond }

// String is the instant in UTC in the format of RFC 3339, with microseconds.
func (i Instant) String() string { return i.Time().UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// Millis is a span in milliseconds: a time to live, or a span as people see it.
type Millis int64

// RoundUp is a span in milliseconds, rounded up.
func RoundUp(d time.Duration) Millis { return Millis(ceil(int64(d), int64(time.Millisecond))) }

// Duration is the span as a time.Duration. It is exact for less than 292 years.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// ceil divides, and rounds up.
func ceil(n, by int64) int64 {
	q := n / by
	if n%by > 0 {
		q++
	}
	return q
}
