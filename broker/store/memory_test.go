package store

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Putting a message into a store with many messages does not wait for memory.
func TestMemoryIsReadyForWhoHasMuch(t *testing.T) {
	s := openMemory(t, Options{SegmentBytes: 1 << 16})
	ready := func() int {
		s.memory.mu.Lock()
		defer s.memory.mu.Unlock()
		return len(s.memory.spare)
	}
	for i := 0; s.Stats().Segments < smallMappings; i++ {
		_, err := s.Put(text(i, 1000), false, 1)
		require.NoError(t, err)
	}
	for i := 0; s.Stats().Segments == smallMappings; i++ {
		require.LessOrEqual(t, ready(), readyMappings)
		_, err := s.Put(text(i, 1000), false, 1)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return ready() == readyMappings }, time.Minute, time.Millisecond)
}

// While the maintainer waits for the disk, the same number of bytes as before takes no more
// memory.
func TestMemoryIsReusedWithoutTheMaintainer(t *testing.T) {
	for _, size := range []int{1000, 1 << 17} {
		s := openMemory(t, Options{SegmentBytes: 1 << 16})
		s.maintainer.close()
		for range 10 {
			var positions []Pos
			for i := range (1 << 20) / size {
				p, err := s.Put(text(i, size), false, 1)
				require.NoError(t, err)
				positions = append(positions, p)
			}
			for _, p := range positions {
				s.Release(p)
			}
			unused := 0
			require.Empty(t, s.memory.unwanted)
			for _, mem := range slices.Concat(s.memory.spare, s.memory.large) {
				unused += len(mem)
			}
			require.Less(t, unused, 1<<21)
		}
		s.maintainer.round()
		unused := 0
		for _, mem := range s.memory.large {
			unused += len(mem)
		}
		require.LessOrEqual(t, unused, spareMappings*s.memory.size)
		require.LessOrEqual(t, len(s.memory.spare), spareMappings)
	}
}
