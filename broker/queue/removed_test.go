package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// purge empties a queue and settles what was in it.
func purge(q *Queue, fx *Effects) int {
	n := q.Purge()
	for q.Sweep(fx) {
	}
	return n
}

// TestPurgeTouchesNoMessage: a purge of a million messages is done at once, and is settled in small steps, while the
// queue is used.
func TestPurgeTouchesNoMessage(t *testing.T) {
	const n = 1 << 20
	q, fx := New(Options{MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1, Priorities: 2}), Effects{}
	for i := range n {
		q.Publish(Message{Bytes: 1, Flags: Durable}, uint8(i%3))
	}
	var held []Seq
	for range 1000 {
		d, ok := q.Take(1, &fx)
		require.True(t, ok)
		held = append(held, d.Seq)
	}
	require.Equal(t, n-1000, q.Purge())
	require.Empty(t, fx.Settled)
	require.Equal(t, [3]int{0, 1000, 1000}, [3]int{q.Ready.Count, q.Unacked.Count, q.Len()})
	require.Equal(t, Sum{Count: 1000, Durable: 1000, Bytes: 1000, DurableBytes: 1000}, q.Unacked)
	require.Zero(t, q.Ready)
	_, ok := q.Take(1, &fx)
	require.False(t, ok)

	late := q.Publish(Message{}, 1)
	require.True(t, q.Settle(held[0], Acked, &fx))
	require.True(t, q.Requeue(1, held[1], false, &fx))
	d, ok := q.Take(1, &fx)
	require.True(t, ok)
	require.Equal(t, held[1], d.Seq, "what a consumer held is back in its place")
	require.NoError(t, q.Check())
	fx.Reset()

	total, steps := 0, 0
	for more := true; more; steps++ {
		more = q.Sweep(&fx)
		require.LessOrEqual(t, len(fx.Settled), AtOnce+chunkEntries)
		for i := range fx.Settled {
			require.Equal(t, Purged, fx.Settled[i].Reason)
		}
		total += len(fx.Settled)
		fx.Reset()
	}
	require.Equal(t, n-1000, total)
	require.Greater(t, steps, n/2/AtOnce)
	require.NoError(t, q.Check())
	for _, s := range held[1:] {
		require.True(t, q.Settle(s, Acked, &fx))
	}
	require.True(t, q.Remove(late, 0, &fx))
	require.Zero(t, q.Len())
	require.NoError(t, q.Check())
}

// TestTakeAndTrimStopAtTheBound: whatever has expired, or is above a limit, a step settles few.
func TestTakeAndTrimStopAtTheBound(t *testing.T) {
	const n = 10 * AtOnce
	q, fx := New(unlimited), Effects{}
	for range n {
		q.Publish(Message{ExpiresAt: 5}, 0)
	}
	last := q.Publish(Message{}, 0)
	steps := 0
	for {
		steps++
		d, ok := q.Take(6, &fx)
		require.LessOrEqual(t, len(fx.Settled), AtOnce)
		full := fx.Full()
		fx.Reset()
		if ok {
			require.Equal(t, last, d.Seq)
			break
		}
		require.True(t, full)
	}
	require.Equal(t, n/AtOnce, steps)

	for range n {
		q.Publish(Message{}, 0)
	}
	q.SetOptions(Options{MaxLength: 1, MaxBytes: -1, DeliveryLimit: -1})
	for more := true; more; {
		more = q.Trim(&fx)
		require.LessOrEqual(t, len(fx.Settled), AtOnce)
		fx.Reset()
	}
	require.Equal(t, 1, q.Ready.Count)
}
