package store

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func (p *Putter) mustPut(t testing.TB, m Message) Pos {
	t.Helper()
	pos, err := p.Put(&m, false, 1)
	require.NoError(t, err)
	return pos
}

// used returns how many bytes of all volatile segments have been appended to.
func used(s *Store) (n int) {
	s.volatile.mu.Lock()
	defer s.volatile.mu.Unlock()
	s.volatile.table.each(func(s *segment) bool {
		n += s.used
		return true
	})
	return n
}

// A single publisher wastes nothing; several at the same time waste no more than they use.
func TestStripsWasteLittle(t *testing.T) {
	for publishers := 1; publishers <= 3; publishers++ {
		for _, batch := range []int{1, 2, 3, 10, 300} {
			s := openMemory(t, Options{SegmentBytes: 1 << 20})
			putters := make([]*Putter, publishers)
			for i := range putters {
				putters[i] = s.NewPutter()
			}
			each, err := messageBytes(new(text(1, 100)), 1)
			require.NoError(t, err)
			for range batch {
				for i := range putters {
					putters[i].mustPut(t, text(1, 100))
				}
			}
			for i := range putters {
				putters[i].End()
			}
			need := align(each) * batch * publishers
			if publishers == 1 {
				require.Equal(t, need, used(s))
			}
			require.Less(t, used(s), 2*need+publishers*minStrip, "%d publishers, batches of %d", publishers, batch)
			require.EqualValues(t, batch*publishers, s.figures().Messages)
		}
	}
}

// Whatever others write between two messages of a batch, and whatever a batch leaves
// unused, does not get mixed up.
func TestStripsDoNotMix(t *testing.T) {
	s := openMemory(t, Options{SegmentBytes: 1 << 15})
	rng := rand.New(rand.NewPCG(1, 1))
	putters := []*Putter{s.NewPutter(), s.NewPutter(), s.NewPutter()}
	want := map[Pos]Message{}
	for i := range 5000 {
		m := text(i, 8+rng.IntN(300))
		if rng.IntN(50) == 0 {
			m = text(i, maxStrip+rng.IntN(1<<16))
		}
		n := rng.IntN(len(putters) + 1)
		if n == len(putters) {
			p, err := s.PutMoved(m, false, 1)
			require.NoError(t, err)
			want[p] = m
			continue
		}
		want[putters[n].mustPut(t, m)] = m
		if rng.IntN(20) == 0 {
			putters[n].End()
		}
	}
	for i := range putters {
		putters[i].End()
		putters[i].End()
	}
	require.Len(t, want, 5000)
	require.EqualValues(t, 5000, s.figures().Messages)
	for p, m := range want {
		require.True(t, bytes.Equal(m.Body, s.View(p).Body))
		s.Release(p)
	}
	require.Zero(t, s.figures().Messages)
	require.Equal(t, 1, s.Stats().Segments)
}

// A segment with an open strip is neither compacted nor moved to disk; other segments are.
func TestSegmentsWithOpenStripsAreLeftAlone(t *testing.T) {
	r := &relocator{entries: map[uint64]Pos{}}
	b := newDropTest(t, Options{Relocate: r.relocate})
	putter := b.NewPutter()
	seq := uint64(0)
	enter := func(p Pos, keep bool) {
		seq++
		b.Enqueued([]Enqueue{{Queue: 1, Seq: seq, Pos: p}})
		if keep {
			r.entries[seq] = p
		} else {
			b.Settled([]Settle{{Queue: 1, Seq: seq, Pos: p}})
		}
	}
	first := putter.mustPut(t, text(1, 64))
	second := putter.mustPut(t, text(2, 64)) // opens a strip
	open := b.volatile.table.get(second.segment())
	for b.volatile.next < 20 {
		p, err := b.Put(text(int(seq)+1, 64), false, 1)
		require.NoError(t, err)
		enter(p, seq%16 == 0)
	}
	for range 5 {
		b.maintain()
	}
	require.True(t, open.hasStrip())
	require.False(t, open.paged)
	require.Less(t, b.Stats().Segments, 10, "the others were compacted")
	third := putter.mustPut(t, text(3, 64))
	require.Equal(t, second.segment(), third.segment(), "it goes on in its strip")
	putter.End()
	require.False(t, open.hasStrip())
	enter(first, false)
	enter(second, true)
	enter(third, false)
	at := seq - 1
	require.Equal(t, second, r.entries[at])
	b.maintainer.evacuateVolatile(open)
	require.NotEqual(t, second, r.entries[at])
	require.LessOrEqual(t, open.refs.Load(), int64(0), "past what its strip left unused")
	require.Equal(t, text(2, 64), b.View(r.entries[at]))
	for _, p := range r.entries {
		b.Release(p)
	}
	require.Zero(t, b.figures().Messages)
	b.shutdown()
}

// Nobody waits for the disk if everything it could take has open strips.
func TestNobodyWaitsForOpenStrips(t *testing.T) {
	tune := tiny(SyncGroup)
	tune.overflow = 1 << 15
	s, _, err := openOn(newCrashDisk(), tune, &Options{})
	require.NoError(t, err)
	var putters []*Putter
	var held []Pos
	for range 100 { // each fills the rest of a segment and leaves a strip open in the next
		p := s.NewPutter()
		putters = append(putters, p)
		filler, err := s.Put(text(1, tune.segmentBytes*3/4), false, 1)
		require.NoError(t, err)
		held = append(held, filler, p.mustPut(t, text(2, 64)), p.mustPut(t, text(3, 64)))
	}
	require.Greater(t, s.figures().ResidentBytes, tune.overflow)
	for _, p := range putters {
		p.End()
	}
	require.Eventually(t, func() bool { return s.figures().ResidentBytes <= tune.resident }, waitFor, tick)
	for _, p := range held {
		s.Release(p)
	}
	require.Zero(t, s.figures().Messages)
	require.NoError(t, s.Close())
}

// Once a strip has ended, what it kept in memory is moved to disk.
func TestOpenStripsHoldNobodyUp(t *testing.T) {
	disk := &slowDisk{newCrashDisk(), make(chan error)}
	close(disk.answers) // it takes everything
	tune := tiny(SyncGroup)
	tune.overflow = 1 << 15
	s, _, err := openOn(disk, tune, &Options{})
	require.NoError(t, err)
	idle := s.NewPutter()
	var held []Pos
	for range 2 {
		held = append(held, idle.mustPut(t, text(1, 64)))
	}
	busy := s.NewPutter()
	for i := range 2000 { // much more than may wait in memory
		held = append(held, busy.mustPut(t, text(i, 500)))
		if i%70 == 0 {
			busy.End()
		}
	}
	busy.End()
	idle.End()
	require.Eventually(t, func() bool { return s.figures().ResidentBytes <= tune.resident }, waitFor, tick, "the end of a strip wakes the maintainer")
	for _, p := range held {
		s.Release(p)
	}
	require.Zero(t, s.figures().Messages)
	require.NoError(t, s.Close())
}
