package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func openDisk(t testing.TB, o Options) (*Store, *Recovery) {
	t.Helper()
	s, r, err := Open(o)
	require.NoError(t, err)
	return s, r
}

// commit waits until all is safe.
func commit(t testing.TB, s *Store) {
	t.Helper()
	done := make(chan error, 1)
	s.Commit(func(err error) { done <- err })
	require.NoError(t, <-done)
}

func TestDiskRoundTrip(t *testing.T) {
	o := Options{Dir: t.TempDir(), SegmentBytes: 1 << 16}
	s, r := openDisk(t, o)
	require.Empty(t, r.Queues)
	var entries []Enqueue
	for i := range 1000 {
		p, err := s.Put(text(i, 1000), true, 1)
		require.NoError(t, err)
		require.True(t, p.Durable())
		e := Enqueue{Queue: 7, Seq: uint64(i + 1), Pos: p, ExpiresAt: int64(i), Flags: uint8(i), Durable: true}
		entries = append(entries, e)
		s.Enqueued(entries[i:])
	}
	commit(t, s)
	for i := range 500 {
		s.Settled([]Settle{{Queue: 7, Seq: uint64(i*2 + 1), Pos: entries[i*2].Pos, Durable: true}})
	}
	require.NoError(t, s.Close())
	for round := range 3 {
		s, r = openDisk(t, o)
		require.Len(t, r.Queues, 1, "round %d", round)
		require.Len(t, r.Queues[0].Entries, 500)
		for i, e := range r.Queues[0].Entries {
			want := entries[i*2+1]
			require.Equal(t, RecoveredEntry{Seq: want.Seq, Pos: want.Pos, ExpiresAt: want.ExpiresAt, Flags: want.Flags}, e)
			require.Equal(t, text(i*2+1, 1000), s.View(e.Pos))
		}
		require.Zero(t, r.CutBytes)
		require.NoError(t, s.Close())
	}
}
