package deadline

import "time"

// Clock returns the time by which deadlines are set and checked, in Unix nanoseconds. It
// must not run backwards. It is called once per batch, from any goroutine.
type Clock func() int64

// carried is the clock that shows the machine's uptime, suspend included, plus an offset.
// If it agrees with the wall clock now it is the clock of a process that keeps nothing (NewClock): the wall clock
// is read once, so a step of it neither expires a message early nor keeps it alive. A broker with a
// data directory continues the clock of its last run, see timeline. How far the clock is
// ahead of the wall clock is known to within elapsedSlack.
func carried(offset int64) *KeptClock {
	up := newElapsed(processClocks(), func() int64 { return uptime().Nanoseconds() })
	return &KeptClock{Clock: func() int64 { return offset + up.now() }, aheadOfWall: func() int64 { return offset + up.asleep.Load() - up.ahead.Load() }}
}

// KeptClock is a clock that knows how far it was ahead of the wall clock when it was last read.
type KeptClock struct {
	Clock
	LastRun     Instant      // when the last run was last known to be alive; 0: there was none
	aheadOfWall func() int64 // ns; while it changes after a suspend it may be too large for a moment, but not too small
}

// GivenClock is the clock c of a program that has its own. Instants that users give and see are by
// the clock wall, or by c if wall is nil.
func GivenClock(c, wall Clock) *KeptClock {
	if wall == nil {
		return &KeptClock{Clock: c, aheadOfWall: func() int64 { return 0 }}
	}
	return &KeptClock{Clock: c, aheadOfWall: func() int64 { return c() - wall() }}
}

// NewClock is the clock of a process that keeps nothing, see carried.
func NewClock() *KeptClock { return carried(time.Now().UnixNano() - uptime().Nanoseconds()) }

// Read is Now and Stamp of the same instant.
func (c Clock) Read() (now, stamp Instant) {
	nanos := c()
	return Instant(nanos / int64(time.Microsecond)), Instant(0).Add(time.Duration(nanos))
}

// Now is the present instant, rounded down: what has passed.
func (c Clock) Now() Instant { return Instant(c() / int64(time.Microsecond)) }

// Stamp is the present instant, rounded up, so that a deadline counted from it is never
// early.
func (c Clock) Stamp() Instant {
	_, stamp := c.Read()
	return stamp
}

// Ahead is how far the clock was ahead of the wall clock when it was last read: whole ms,
// rounded up, so that what a user gives in ms is shown as it was given, and is not early.
func (k *KeptClock) Ahead() time.Duration {
	return RoundUp(time.Duration(k.aheadOfWall())).Duration()
}

// Offset is how far the clock is ahead of the wall clock now, in whole ms. It is 0 unless
// the wall clock was changed while the machine was up, or was wrong when an earlier run began
// whose clock this one continues (timeline).
func (k *KeptClock) Offset() time.Duration {
	k.Clock()
	return k.Ahead()
}

// UnixMillis is an instant of the broker's clock as users see it: in ms of the wall clock,
// rounded up. 0 stays 0.
func (k *KeptClock) UnixMillis(at Instant) int64 {
	if at == 0 {
		return 0
	}
	k.Clock()
	return at.Add(-k.Ahead()).UnixMilli()
}

// Instant is the instant of the broker's clock at which the wall clock will show unixMillis, if
// nobody changes it until then; at least 1. 0 stays 0.
func (k *KeptClock) Instant(unixMillis int64) Instant {
	if unixMillis == 0 {
		return 0
	}
	k.Clock()
	return max(FromUnixMilli(unixMillis).Add(k.Ahead()), 1)
}

// WallSeconds is an instant in Unix seconds of the wall clock, as AMQP's timestamps are.
func (k *KeptClock) WallSeconds(at Instant) int64 { return at.Add(-k.Ahead()).Time().Unix() }

// UnixMillisDown is UnixMillis rounded down, as of the last reading of the clock: a consumer that
// relies on a lock until that time still has it.
func (k *KeptClock) UnixMillisDown(at Instant) int64 {
	return at.Add(-k.Ahead()).Time().UnixMilli()
}

// UntilSecond is how long it is from now to the next full second of the wall clock, or to the one after it if that is very near. Loops that
// look around once a second wait for so long. Then they wake up together: what an idle process costs is how often it wakes up.
func UntilSecond(now time.Time) time.Duration {
	const near = 100 * time.Millisecond // it has just been: timers and the wall clock differ a little
	rest := time.Second - time.Duration(now.Nanosecond())
	if rest < near {
		rest += time.Second
	}
	return rest
}
