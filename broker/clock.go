package broker

import (
	"time"

	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
)

// clocks are the ways to read the broker's clock.
type clocks struct {
	env    *delivery.Env
	Manual *ManualClock // what moves the clock; nil: time passes by itself
}

// Now is the present instant by the clock deadlines are stamped
// with, rounded down.
func (c *clocks) Now() deadline.Instant { return c.env.Clock.Now() }

// ClockOffset is how far the clock deadlines are stamped with is ahead of the wall
// clock, in whole ms. It is 0 until the wall clock is set while the machine is up, or
// was wrong when an earlier run began whose clock this one continues.
func (c *clocks) ClockOffset() time.Duration { return c.env.Clock.Offset() }

// UnixMillis is an instant of the broker's clock as users see it: in ms of the wall clock,
// rounded up, so that no deadline comes earlier than it is shown.
// 0 stays 0.
func (c *clocks) UnixMillis(at deadline.Instant) int64 { return c.env.Clock.UnixMillis(at) }

// Instant is the instant of the broker's clock at which the wall clock shows
// unixMillis, unless somebody sets the wall clock before; at least 1. 0 stays 0.
func (c *clocks) Instant(unixMillis int64) deadline.Instant { return c.env.Clock.Instant(unixMillis) }
