package broker

import "time"

// Clock tells the time deadlines are stamped and judged with, in Unix
// nanoseconds. It must not run backwards. It is called once per batch, from any
// goroutine.
type Clock func() int64

// newOffset is that of a carried clock which agrees with the wall clock now.
func newOffset() int64 { return time.Now().UnixNano() - uptime().Nanoseconds() }

// carried is the clock that shows the time the machine has been up, suspend included,
// plus an offset. With newOffset it is the clock of a process that keeps nothing: the
// wall clock read once. Stepping the wall clock therefore neither expires a message
// early nor keeps it alive. A broker with a data directory continues the clock of its
// last run, see timeline. ahead is how far the clock was ahead of the wall clock when it
// was read last, to within elapsedSlack, in ns.
func carried(offset int64) (clock Clock, ahead func() int64) {
	up := newElapsed(processClocks(), func() int64 { return uptime().Nanoseconds() })
	return func() int64 { return offset + up.now() }, func() int64 { return offset + up.aheadOfWall() }
}

// aheadOf is how far the clock is ahead of another, in ns.
func (c Clock) aheadOf(wall Clock) func() int64 {
	if wall == nil {
		return func() int64 { return 0 }
	}
	return func() int64 { return c() - wall() }
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

// Instants are Unix µs of the broker's clock in here; times to live, and all that users
// give and are shown, are ms, and their instants are those of the wall clock.
const (
	milli  = 1000      // µs
	second = 1_000_000 // µs
)

// millis is a span, in µs, as users are shown it: in ms, rounded up.
func millis(span int64) int64 { return (span + milli - 1) / milli }

// ahead is how far the clock is ahead of the wall clock, in µs: whole ms, rounded up, so
// that what a user gives in ms is shown as it was given, and is not early. It is of the
// moment the clock was read last.
func (b *Broker) ahead() int64 {
	const unit = milli * int64(time.Microsecond)
	ahead := b.aheadOfWall()
	whole := ahead / unit
	if ahead > whole*unit {
		whole++
	}
	return whole * milli
}

// ClockOffset is how far the clock deadlines are stamped with is ahead of the wall
// clock, in whole ms. It is 0 until the wall clock is set while the machine is up, or
// was wrong when an earlier run began whose clock this one continues (timeline).
func (b *Broker) ClockOffset() time.Duration {
	b.clock()
	return time.Duration(b.ahead()) * time.Microsecond
}

// UnixMillis is an instant of the broker's clock, Unix µs, as users are shown it: in ms
// of the wall clock, rounded up, so that a deadline is not before the one that is shown.
// 0 stays 0.
func (b *Broker) UnixMillis(at int64) int64 {
	if at == 0 {
		return 0
	}
	b.clock()
	return millis(at - b.ahead())
}

// Instant is the instant of the broker's clock, Unix µs, at which the wall clock shows
// unixMillis, if nobody sets it meanwhile; at least 1. 0 stays 0.
func (b *Broker) Instant(unixMillis int64) int64 {
	if unixMillis == 0 {
		return 0
	}
	b.clock()
	return max(unixMillis*milli+b.ahead(), 1)
}

// wallSeconds is an instant in Unix seconds of the wall clock, as AMQP's timestamps are.
func (b *Broker) wallSeconds(at int64) int64 { return (at - b.ahead()) / second }
