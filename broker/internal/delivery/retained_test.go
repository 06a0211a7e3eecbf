package delivery

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// A target has the dead letter in memory only, another refused it: whatever becomes of
// later tries, the journal keeps the original.
func TestUnsavedCopyKeepsTheOriginalInTheJournal(t *testing.T) {
	e := &Env{Clock: deadline.NewClock(), Log: zap.NewNop()}
	e.Init()
	var q Queue
	q.Init(QueueOptions{Env: e, Name: "q", Lines: &Lines{First: func(*Transition) {}}, Settings: &policy.Settings{TTLMillis: -1}})
	s := e.Begin()
	defer s.Done()
	x := Letter{Settings: q.Settings(), Queued: true, Unsaved: true}
	require.True(t, q.Retained.Keep(s, x, nil, 0))
	assert.False(t, q.Retained.kept.line.at(0).Unsaved, "nobody has it: the next try counts")
	require.True(t, q.Retained.Keep(s, x, []store.Enqueue{{Queue: 7, Pos: 1}}, 0))
	assert.True(t, q.Retained.kept.line.at(1).Unsaved)
}
