package deadline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadline"
)

func TestLatenessAndWallClock(t *testing.T) {
	for name, c := range map[string]struct {
		deadline, arrived deadline.Instant
		late              time.Duration
		wallDeadline      deadline.Instant
	}{
		"late":                 {10_000_000, 10_000_007, 7 * time.Microsecond, 7_000_000},
		"on time":              {10_000_000, 10_000_000, 0, 7_000_000},
		"made to expire early": {10_000_000, 9_000_000, 0, 7_000_000},
		"it had no deadline":   {0, 9_000_000, 0, 0},
	} {
		e := deadline.Expiry{Ref: deadline.Ref{Deadline: c.deadline}, Arrived: c.arrived, ClockAhead: 3 * time.Second}
		assert.Equal(t, c.late, e.Lateness(), name)
		wallDeadline, wallArrived := e.Wall()
		assert.Equal(t, c.wallDeadline, wallDeadline, name)
		assert.Equal(t, c.arrived-3_000_000, wallArrived, name)
	}
}

func TestNames(t *testing.T) {
	for p := range deadline.Path(deadline.Paths) {
		assert.NotEmpty(t, p.String())
		assert.Equal(t, p == deadline.Eager || p == deadline.Index || p == deadline.Stalled, p.Proposed())
	}
	for a := range deadline.Action(deadline.Actions) {
		assert.NotEmpty(t, a.String())
	}
	for o := range deadline.Outcome(deadline.Outcomes) {
		assert.NotEmpty(t, o.String())
	}
	assert.Equal(t, "index", deadline.Stalled.String())
}
