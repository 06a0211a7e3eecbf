package store

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// A start on a full disk leaves the next segment's file as an empty one. It must still be there
// after the store has tried in vain to give it its space.
func TestStartsOnFullDisk(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	p, err := s.Put(text(1, 100), true, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	commit(t, s)
	require.NoError(t, s.Close())
	for name, n := range disk.names {
		if n.end() == 0 {
			delete(disk.names, name)
		}
	}
	disk.space = disk.used()
	for range 4 {
		s, r, err := reopen(disk)
		require.NoError(t, err)
		require.Equal(t, []uint64{1}, seqs(r))
		require.Eventually(t, s.journal.isFull, waitFor, tick)
		_, err = s.Put(text(2, 100), true, 1)
		require.ErrorIs(t, err, ErrFull)
		if err := s.CloseClean(nil); err != nil {
			require.True(t, errors.Is(err, ErrFull) || noSpace(err), err)
		}
	}
}
