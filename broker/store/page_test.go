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

// What is spilled takes neither descriptors nor names. Messages larger than a segment are spilled as well, and
// can be read all the time.
func TestSpilledFilesAreClosed(t *testing.T) {
	dir := t.TempDir()
	real, err := openDir(dir)
	require.NoError(t, err)
	disk, o := &countedDisk{fileSystem: real}, Options{Dir: dir, SegmentBytes: 1 << 14}
	s := openTuned(t, disk, o, 1<<14)
	s.maintainer.close()
	var positions []Pos
	for i := range 500 {
		size := 900
		if i%100 == 0 {
			size = 1 << 15
		}
		p, err := s.Put(text(i, size), false, 1)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	first := s.View(positions[0])
	s.maintainer.round()
	require.Greater(t, disk.made, 20)
	require.Zero(t, disk.open)
	_, err = os.Stat(filepath.Join(dir, spillTemp))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.Equal(t, text(0, 1<<15), first, "by who looked before")
	for i, p := range positions {
		require.Equal(t, text(i, len(s.View(p).Body)), s.View(p))
		s.Release(p)
	}
	require.NoError(t, s.Close())
}

// A disk that fails halfway leaves transient messages as they are, and takes them when it
// works again.
func TestSpillingFails(t *testing.T) {
	disk := &failingDisk{fileSystem: newCrashDisk()}
	tune := tiny(SyncGroup)
	s, _, err := openOn(disk, tune, &Options{})
	require.NoError(t, err)
	s.maintainer.close()
	var positions []Pos
	for i := range 200 {
		p, err := s.Put(text(i, 500), false, 1)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	for _, at := range []string{"create", "remove", "write", "map"} {
		disk.at = at
		was := s.figures().ResidentBytes
		s.maintainer.round()
		require.Greater(t, s.figures().ResidentBytes, tune.resident, at)
		require.LessOrEqual(t, s.figures().ResidentBytes, was)
	}
	disk.at = ""
	s.maintainer.round()
	require.LessOrEqual(t, s.figures().ResidentBytes, tune.resident)
	for i, p := range positions {
		require.Equal(t, text(i, 500), s.View(p))
		s.Release(p)
	}
	require.NoError(t, s.Close())
}
