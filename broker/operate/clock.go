package operate

import (
	"context"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/deadline"
)

// ClockTime is what the broker's clock shows.
type ClockTime struct {
	Manual     bool  // it stands until it is moved
	NowMillis  int64 // Unix ms
	NextMillis int64 // with a manual clock: when something is due next, Unix ms; 0: nothing is
}

// Clock returns what the broker's clock shows. Where it is manual, everything that is due has happened.
func (o *Operations) Clock(ctx context.Context, a Actor) (ClockTime, error) {
	if err := o.permit(&a, ReadClock, ""); err != nil {
		return ClockTime{}, err
	}
	clock := o.Broker.Manual()
	if clock == nil {
		return ClockTime{NowMillis: o.Broker.UnixMillis(o.Broker.Now())}, nil
	}
	t, err := clock.Time(ctx)
	return manualTime(t), err
}

// AdvanceClock moves a manual clock forward by d. Error: ErrNotManual, or an *Invalid.
func (o *Operations) AdvanceClock(ctx context.Context, a Actor, d time.Duration) (ClockTime, error) {
	return o.moveClock(a, zap.Duration("by", d), func(c *broker.ManualClock) (broker.ManualTime, error) { return c.Advance(ctx, d) })
}

// NextClock moves a manual clock to the next instant at which something happens. Error: ErrNotManual.
func (o *Operations) NextClock(ctx context.Context, a Actor) (ClockTime, error) {
	return o.moveClock(a, zap.Bool("next", true), func(c *broker.ManualClock) (broker.ManualTime, error) { return c.Next(ctx) })
}

// moveClock moves a manual clock. A move is not recorded: it is a step of a test, and there are many.
func (o *Operations) moveClock(a Actor, how zap.Field, move func(*broker.ManualClock) (broker.ManualTime, error)) (ClockTime, error) {
	if err := o.Permit(a, MoveClock, ""); err != nil {
		return ClockTime{}, err
	}
	clock := o.Broker.Manual()
	if clock == nil {
		return ClockTime{}, ErrNotManual
	}
	t, err := move(clock)
	if err != nil {
		return ClockTime{}, &Invalid{err.Error()}
	}
	o.Server.CheckAckTimeouts()
	o.log.Debug("clock moved", how, zap.Stringer("to", t.At), zap.String("user", a.Name))
	return manualTime(t), nil
}

// manualTime is what a manual clock shows: it is its own wall clock.
func manualTime(t broker.ManualTime) ClockTime {
	millis := func(at deadline.Instant) int64 {
		if at == 0 {
			return 0
		}
		return at.UnixMilli()
	}
	return ClockTime{true, millis(t.At), millis(t.Next)}
}
