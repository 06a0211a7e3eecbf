package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What passes through a long queue of transient messages reuses the same places on disk,
// which are freed with the last message. Messages larger than a segment have files of their
// own.
func TestPlacesOnDiskAreUsedAgain(t *testing.T) {
	dir := t.TempDir()
	real, err := openDir(dir)
	require.NoError(t, err)
	disk, o := &countedDisk{fileSystem: real}, Options{Dir: dir, SegmentBytes: 1 << 14}
	s := openTuned(t, disk, o, 1<<15)
	s.maintainer.close()
	size := func(i int) int {
		if i%500 == 0 {
			return 1 << 15
		}
		return 1000
	}
	const queued, all = 1000, 10_000 // some 65 segments, 650 in all
	var positions []Pos
	release := func(i int) {
		require.Equal(t, text(i, size(i)), s.View(positions[i]), "message %d", i)
		s.Release(positions[i])
	}
	for i := range all {
		p, err := s.Put(text(i, size(i)), false, 1)
		require.NoError(t, err)
		if positions = append(positions, p); i >= queued {
			release(i - queued)
		}
		if i%50 == 0 {
			s.maintainer.round()
			require.LessOrEqual(t, disk.open, 2, "message %d", i)
		}
	}
	require.LessOrEqual(t, disk.made, 2+all/500)
	for i := all - queued; i < all; i++ {
		release(i)
	}
	s.maintainer.round()
	require.Zero(t, disk.open)
	require.NoError(t, s.Close())
}

// A few messages left over from many do not occupy the disk space of all, and can be read
// while they are moved. Messages larger than a segment keep no descriptor.
func TestFewPlacesOnDiskAreFree(t *testing.T) {
	dir := t.TempDir()
	real, err := openDir(dir)
	require.NoError(t, err)
	disk, o := &countedDisk{fileSystem: real}, Options{Dir: dir, SegmentBytes: 1 << 14}
	s := openTuned(t, disk, o, 1<<14)
	s.maintainer.close()
	var positions []Pos
	for i := range 16 * 500 {
		size := 900
		if i%100 == 0 {
			size = 1 << 15
		}
		p, err := s.Put(text(i, size), false, 1)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	s.maintainer.round()
	require.InDelta(t, 500/spillPlaces, disk.open, 2)
	left := map[int]Message{}
	for i, p := range positions {
		if p.segment()%16 == 3 {
			left[i] = s.View(p)
		} else {
			s.Release(p)
		}
	}
	s.maintainer.round()
	require.Len(t, s.maintainer.spilled.files, 1)
	require.Equal(t, 1, disk.open)
	for i, m := range left {
		require.Equal(t, text(i, len(m.Body)), m, "by who looked before")
		require.Equal(t, m, s.View(positions[i]))
		s.Release(positions[i])
	}
	s.maintainer.round()
	require.Zero(t, disk.open)
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
	for _, at := range []string{"remove", "write", "map", "allocate"} {
		disk.at = at
		was := s.figures().ResidentBytes
		s.maintainer.round()
		require.Greater(t, s.figures().ResidentBytes, tune.resident, at)
		require.LessOrEqual(t, s.figures().ResidentBytes, was)
		for _, f := range s.maintainer.spilled.files {
			require.NotZero(t, f.used, "%s: a file nothing is in", at)
		}
	}
	disk.at = ""
	s.maintainer.round()
	require.LessOrEqual(t, s.figures().ResidentBytes, tune.resident)
	for i, p := range positions {
		require.Equal(t, text(i, 500), s.View(p))
		s.Release(p)
	}
	s.maintainer.round()
	require.Empty(t, s.maintainer.spilled.files)
	require.NoError(t, s.Close())
}
