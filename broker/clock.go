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
	return now / int64(time.Millisecond), (now + int64(time.Millisecond) - 1) / int64(time.Millisecond)
}

// nowAt is the present instant in Unix ms, rounded down: what has passed.
func (c Clock) nowAt() int64 { return c() / int64(time.Millisecond) }

// stampAt is the present instant in Unix ms, rounded up, so that a deadline
// counted from it is never early.
func (c Clock) stampAt() int64 {
	_, stampAt := c.read()
	return stampAt
}
