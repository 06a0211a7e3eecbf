package admin

import (
	"context"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/operate"
)

// ClockTime is what the clock of deadlines shows.
type ClockTime struct {
	Manual bool  `json:"manual" table:"CLOCK"` // it stands until it is moved
	Now    int64 `json:"now"`                  // Unix ms
	Next   int64 `json:"next"`                 // with a manual clock: when something is due next, Unix ms; 0: nothing is
}

// Cell is a value as text for a table.
func (t ClockTime) Cell(column string) (string, bool) {
	switch {
	case column == "manual" && t.Manual:
		return "manual", true
	case column == "manual":
		return "system", true
	case column == "now":
		return time.UnixMilli(t.Now).UTC().Format("2006-01-02T15:04:05.000Z"), true
	case t.Next == 0:
		return "-", true
	case t.Next <= t.Now:
		return "now", true
	}
	return "in " + (time.Duration(t.Next-t.Now) * time.Millisecond).String(), true
}

// GetClock returns what the broker's clock shows. Where it is manual, everything that is due has happened.
var GetClock = operate.Define(operate.Op{
	Name: "get_clock", Title: "Show the clock of deadlines, which tests move if it is manual", Rule: operate.Rule{Role: operate.Management, Looks: true},
	Text: "With a manual clock, everything that is due has happened when the answer comes.", Routes: []string{"GET /api/curfew/clock"}, Command: "clock",
	Help: `With --clock manual the clock of deadlines stands until it is moved. What is due until then (deadlines, delays, locks, idle
queues, retries) happens in order of time, and has happened when the command returns. Only administrators may move it.`,
	Example: "  curfew clock\n  curfew clock advance 1h\n  curfew clock next",
}, func(ctx context.Context, c *operate.Call, _ operate.None) (ClockTime, error) {
	clock := c.Broker.Manual
	if clock == nil {
		return ClockTime{Now: c.Broker.UnixMillis(c.Broker.Now())}, nil
	}
	t, err := clock.Advance(ctx, 0)
	return manualTime(t), err
})

// ClockMove says how far the clock goes.
type ClockMove struct {
	Advance string `json:"advance" is:"duration" doc:"by this, such as 90s, 1h30m or 0s" eg:"1h"`
	Next    bool   `json:"next" hide:"command" doc:"to the next instant at which something happens"`
}

// MoveClock moves a manual clock forward. Error: operate.ErrNotManual, among others. A move is not recorded: it is a step of a test, and there are many.
var MoveClock = operate.Define(operate.Op{
	Name: "move_clock", Title: "Move a manual clock forward, such as by 90s or 1h30m; 0s waits for what is due now", Rule: operate.Rule{Role: operate.Administrator},
	Text:   "The body has one of `advance` and `next`. Everything that is due until then has happened, in order of time, when the answer comes. 409: the clock is not manual.",
	Routes: []string{"POST /api/curfew/clock"}, Command: "clock advance <advance>",
	Also: []operate.Way{{Command: "clock next", Title: "Move a manual clock to the next instant at which something happens", Sets: map[string]any{"next": true, "advance": ""}}},
}, func(ctx context.Context, c *operate.Call, m ClockMove) (ClockTime, error) {
	c.Asks = true
	if m.Next == (m.Advance != "") {
		return ClockTime{}, &operate.Invalid{Reason: `want {"advance": "1h"} or {"next": true}`}
	}
	clock := c.Broker.Manual
	if clock == nil {
		return ClockTime{}, operate.ErrNotManual
	}
	move := clock.Next
	if d, err := time.ParseDuration(m.Advance); err == nil { // checked by its kind
		move = func(ctx context.Context) (broker.ManualTime, error) { return clock.Advance(ctx, d) }
	}
	t, err := move(ctx)
	if err != nil {
		return ClockTime{}, &operate.Invalid{Reason: err.Error()}
	}
	c.Server.CheckAckTimeouts()
	c.Options.Log.Debug("clock moved", zap.String("by", m.Advance), zap.Stringer("to", t.At), zap.String("user", c.Actor.Name))
	return manualTime(t), nil
})

// manualTime is what a manual clock shows: it is its own wall clock.
func manualTime(t broker.ManualTime) ClockTime {
	shown := ClockTime{Manual: true, Now: t.At.UnixMilli()}
	if t.Next != 0 {
		shown.Next = t.Next.UnixMilli()
	}
	return shown
}
