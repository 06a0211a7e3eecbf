package delivery

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// Events come in order, however they are taken. A full feed says so once.
func TestFeedKeepsTheOrder(t *testing.T) {
	var f feed
	f.Signal = make(chan struct{}, 1)
	f.Push(make([]deadline.Event, 1)) // nobody wants it
	f.On.Store(true)
	rng := rand.New(rand.NewPCG(1, 1))
	pushed, taken := uint64(0), uint64(0)
	buf := make([]deadline.Event, 3*feedChunk)
	push := func(n int) {
		events := make([]deadline.Event, n)
		for i := range events {
			pushed++
			events[i].Ref.Seq = pushed
		}
		f.Push(events)
	}
	take := func(n int) {
		n, lagged := f.Take(buf[:n])
		require.False(t, lagged)
		for _, e := range buf[:n] {
			taken++
			require.Equal(t, taken, e.Ref.Seq)
		}
		require.EqualValues(t, pushed-taken, f.Pending())
	}
	for range 300 {
		push(rng.IntN(feedChunk))
		take(rng.IntN(feedChunk))
	}
	for f.Pending() > 0 {
		take(len(buf))
	}
	require.Len(t, f.chunks, 1)

	push(maxEvents)
	f.Push(make([]deadline.Event, 1))
	require.Zero(t, f.Pending())
	n, lagged := f.Take(buf)
	require.True(t, lagged)
	require.Equal(t, len(buf), n)
	_, lagged = f.Take(buf)
	require.False(t, lagged)
}
