package broker

import "time"

// Clock tells the time deadlines are stamped and judged with, in Unix
// nanoseconds. It must not run backwards. It is called once per batch, from any
// goroutine.
type Clock func() int64

// NewClock returns the clock of a process that keeps nothing: the wall clock read
// once, at the call, and from then on carried by the time the machine has been
// up, suspend included. Stepping the wall clock therefore neither expires a
// message early nor keeps it alive; a process that outlives a large step shows
// Unix times that are off by it until it restarts. A broker with a data directory
// continues the clock of its last run instead, see timeline.
func NewClock() Clock { return carried(time.Now().UnixNano() - uptime().Nanoseconds()) }

// carried is the clock that shows the machine's uptime plus an offset.
func carried(offset int64) Clock {
	up := newElapsed(processClocks(), func() int64 { return uptime().Nanoseconds() })
	return func() int64 { return offset + up.now() }
}

// read is nowAt and stampAt of one instant.
func (c Clock) read() (nowAt, stampAt int64) {
	now := c()
	return now / int64(time.Microsecond), (now + int64(time.Microsecond) - 1) / int64(time.Microsecond)
}

// nowAt is the present instant in Unix µs, rounded down: what has passed.
func (c Clock) nowAt() int64 { return c() / int64(time.Microsecond) }

// stampAt is the present instant in Unix µs, rounded up, so that a deadline
// counted from it is never early.
func (c Clock) stampAt() int64 {
	_, stampAt := c.read()
	return stampAt
}

// Instants are Unix µs in here; times to live, and all that users give and are shown,
// are ms.
const (
	milli  = 1000      // µs
	second = 1_000_000 // µs
)

// UnixMillis is an instant or a span, in µs, as users are shown it: in ms, rounded up,
// so that a deadline is not before the one that is shown. 0 stays 0.
func UnixMillis(at int64) int64 { return (at + milli - 1) / milli }
