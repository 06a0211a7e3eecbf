package store

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Old segments of both logs are moved to files while readers use them.
func TestPagingIsNotNoticed(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, SegmentBytes: 1 << 16}
	disk, err := openDir(dir)
	require.NoError(t, err)
	s := openTuned(t, disk, o, 1<<17)
	var positions []Pos
	for i := range 2000 {
		p, err := s.Put(text(i, 1000), i%2 == 0, 0)
		require.NoError(t, err)
		positions = append(positions, p)
		if i%100 == 0 {
			for i, p := range positions {
				require.Equal(t, text(i, 1000), s.View(p))
			}
		}
	}
	require.Eventually(t, func() bool { return s.figures().ResidentBytes <= 2<<17 }, waitFor, tick)
	for i, p := range positions {
		require.Equal(t, text(i, 1000), s.View(p))
		s.Release(p)
	}
	require.Zero(t, s.figures().Messages)
	_, err = os.Stat(filepath.Join(dir, spillTemp))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, s.Close())
}

// Releasing the last message of a paged segment does not wait for the removal of its file.
func TestMaintainerUnmapsWhatIsPaged(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, SegmentBytes: 1 << 16}
	disk, err := openDir(dir)
	require.NoError(t, err)
	s := openTuned(t, disk, o, 1<<17)
	s.maintainer.close()
	var positions []Pos
	for i := range 500 {
		p, err := s.Put(text(i, 1000), false, 1)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	s.maintainer.round()
	for _, p := range positions {
		s.Release(p)
	}
	require.Greater(t, len(s.memory.unwanted), 3)
	s.maintainer.round()
	require.Empty(t, s.memory.unwanted)
	require.NoError(t, s.Close())
}
