package schedule

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"curfew/broker/deadline"
)

// TestWindowAgainstAModel pushes and pops at random and compares with a plain list.
func TestWindowAgainstAModel(t *testing.T) {
	type entry struct {
		seq     uint64
		untilAt deadline.Instant
	}
	random := rand.New(rand.NewPCG(3, 4))
	w := window{span: 20 * time.Millisecond}
	var model []entry
	seq, nowAt := uint64(0), deadline.Instant(1_000_000)
	for range 20_000 {
		switch random.IntN(4) {
		case 0:
			nowAt = nowAt.Add(time.Duration(random.IntN(15)) * batchSpan) // within one of it the window may let go early
		case 1:
			popped := w.pop(nowAt)
			for _, s := range popped {
				require.Equal(t, model[0].seq, s.Seq)
				require.LessOrEqual(t, model[0].untilAt, nowAt)
				model = model[1:]
			}
			if len(popped) == 0 && len(model) > 0 {
				require.Greater(t, model[0].untilAt, nowAt)
			}
		default:
			for range random.IntN(40) {
				seq++
				w.push(deadline.Ref{Deadline: 1, Seq: seq}, nowAt)
				model = append(model, entry{seq, nowAt + 20_000})
			}
		}
		require.Equal(t, len(model), w.length)
		if len(model) == 0 {
			require.Zero(t, w.nextAt())
		} else {
			require.Equal(t, model[0].untilAt, w.nextAt())
		}
	}
}

func TestFullWindowLetsTheOldestGo(t *testing.T) {
	w := window{span: 20 * time.Millisecond}
	for i := range maxWindow + 100 {
		w.push(deadline.Ref{Seq: uint64(i)}, 1000)
	}
	popped := 0
	for some := w.pop(1001); len(some) > 0; some = w.pop(1001) {
		require.Equal(t, uint64(popped), some[0].Seq)
		popped += len(some)
	}
	require.GreaterOrEqual(t, popped, 100)
	require.Less(t, popped, 100+feedBatch)
	require.LessOrEqual(t, w.length, maxWindow)
}

func TestWindowTakesWhatCanWait(t *testing.T) {
	w := window{span: 20 * time.Millisecond}
	require.True(t, w.takes(41_001, 1000))
	require.False(t, w.takes(41_000, 1000))
	require.False(t, w.takes(0, 1000))
	w.span = -1
	require.False(t, w.takes(1_000_000, 1000))
}

// TestWindowKeepsFewBatches: what comes within a millisecond is let go together, and none waits longer than the window.
func TestWindowKeepsFewBatches(t *testing.T) {
	w := window{span: 20 * time.Millisecond}
	const n = 10_000
	for i := range deadline.Instant(n) {
		w.push(deadline.Ref{Seq: uint64(i)}, i) // one every µs
	}
	require.Len(t, w.batches, 10, "of 1024 at most, within 5 ms each")
	for nowAt := deadline.Instant(20_000); w.length > 0; nowAt += 100 {
		for _, s := range w.pop(nowAt) {
			require.Greater(t, nowAt, deadline.Instant(20_000+s.Seq).Add(-batchSpan))
		}
		if next := w.nextAt(); next != 0 {
			require.LessOrEqual(t, next, deadline.Instant(20_000+n-w.length), "the oldest has not waited too long")
		}
	}
}

// TestBusyWindowReusesItsBatches: at a steady pace the window makes no garbage.
func TestBusyWindowReusesItsBatches(t *testing.T) {
	w := window{span: 20 * time.Millisecond}
	nowAt := deadline.Instant(1_000_000)
	round := func() {
		for range 100 {
			nowAt = nowAt.Add(100 * time.Microsecond)
			for seq := range uint64(50) {
				w.push(deadline.Ref{Deadline: 1, Seq: seq}, nowAt)
			}
			for some := w.pop(nowAt); len(some) > 0; some = w.pop(nowAt) {
				w.reuse(some)
			}
		}
	}
	for range 5 {
		round() // the first batches grow
	}
	require.Zero(t, testing.AllocsPerRun(10, round))
	require.LessOrEqual(t, len(w.spares), maxSpares)
}
