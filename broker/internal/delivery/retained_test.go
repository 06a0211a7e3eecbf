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

func retainingQueue(t testing.TB) (*Queue, *Transition) {
	e := &Env{Clock: deadline.NewClock(), Log: zap.NewNop()}
	e.Init()
	q := new(Queue)
	q.Init(QueueOptions{Env: e, Identity: new(Identity), Name: "q", Lines: &Lines{First: func(*Transition) {}}, Settings: &policy.Settings{TTLMillis: -1}})
	s := e.Begin()
	t.Cleanup(s.Done)
	return q, s
}

// The list of targets that have a letter is made once, however many there are, and the next try adds to a copy.
func TestKeepingALetterOfManyTargets(t *testing.T) {
	q, s := retainingQueue(t)
	into := make([]store.Enqueue, 1000)
	for i := range into {
		into[i] = store.Enqueue{Queue: uint64(i + 1), Pos: 1}
	}
	into[500].Pos = 2 // the receipt
	x := Letter{Settings: q.Settings(), Queued: true}
	assert.Less(t, testing.AllocsPerRun(10, func() { q.Retained.Keep(s, x, into, 2) }), 20.0)
	first := q.Retained.kept.line.at(0)
	require.Len(t, first.Done, 999)
	for id := range uint64(2) {
		require.True(t, q.Retained.Keep(s, *first, []store.Enqueue{{Queue: 2000 + id, Pos: 1}}, 0))
	}
	n := uint64(q.Retained.kept.line.n)
	assert.Equal(t, uint64(2000), q.Retained.kept.line.at(n - 2).Done[999], "the other try left it alone")
	assert.Equal(t, uint64(2001), q.Retained.kept.line.at(n - 1).Done[999])
}

// A target has the dead letter in memory only, another refused it: whatever becomes of
// later tries, the journal keeps the original.
func TestUnsavedCopyKeepsTheOriginalInTheJournal(t *testing.T) {
	q, s := retainingQueue(t)
	x := Letter{Settings: q.Settings(), Queued: true, Unsaved: true}
	require.True(t, q.Retained.Keep(s, x, nil, 0))
	assert.False(t, q.Retained.kept.line.at(0).Unsaved, "nobody has it: the next try counts")
	require.True(t, q.Retained.Keep(s, x, []store.Enqueue{{Queue: 7, Pos: 1}}, 0))
	assert.True(t, q.Retained.kept.line.at(1).Unsaved)
}
