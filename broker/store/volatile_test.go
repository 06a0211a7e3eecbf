package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func openMemory(t testing.TB, o Options) *Store {
	t.Helper()
	s, _, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func text(i, size int) Message {
	body := bytes.Repeat([]byte(fmt.Sprintf("%08d", i)), size/8+1)[:size]
	return Message{Exchange: []byte("ex"), RoutingKey: []byte("key"), Properties: []byte{0, 0}, Body: body}
}

func TestViewReturnsWhatWasPut(t *testing.T) {
	s := openMemory(t, Options{SegmentBytes: 1 << 16})
	for _, size := range []int{0, 1, 7, 8, 100, 1 << 15, 1 << 16, 1 << 20} {
		m := text(size, size)
		p, err := s.Put(m, false, 1)
		require.NoError(t, err)
		got := s.View(p)
		require.Equal(t, m.Exchange, got.Exchange)
		require.Equal(t, m.RoutingKey, got.RoutingKey)
		require.Equal(t, m.Properties, got.Properties)
		require.True(t, bytes.Equal(m.Body, got.Body))
	}
}

// Whoever puts a message into a store with many does not wait for memory.
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

// While the keeper waits for the disk, as many bytes as before take no more memory.
func TestMemoryIsUsedAgainWithoutTheKeeper(t *testing.T) {
	for _, size := range []int{1000, 1 << 17} {
		s := openMemory(t, Options{SegmentBytes: 1 << 16})
		s.keeper.close()
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
			for _, mem := range slices.Concat(s.memory.spare, s.memory.large, s.memory.unwanted) {
				unused += len(mem)
			}
			require.Less(t, unused, 1<<21)
		}
		s.keeper.round()
		require.Empty(t, s.memory.large)
		require.LessOrEqual(t, len(s.memory.spare), spareMappings)
	}
}

func TestSegmentsGoWithTheirLastReference(t *testing.T) {
	s := openMemory(t, Options{SegmentBytes: 1 << 16})
	var positions []Pos
	for i := range 1000 {
		p, err := s.Put(text(i, 1000), false, 2)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	require.Equal(t, int64(2000), s.Stats().Messages)
	full := s.Stats().Segments
	for _, p := range positions {
		s.Release(p)
	}
	require.Equal(t, full, s.Stats().Segments)
	for _, p := range positions {
		s.Release(p)
	}
	require.Equal(t, 1, s.Stats().Segments, "only the one that is appended to")
	require.Zero(t, s.Stats().Messages)
}

func TestTooLarge(t *testing.T) {
	s := openMemory(t, Options{})
	_, err := s.Put(Message{RoutingKey: make([]byte, 256)}, false, 1)
	require.ErrorIs(t, err, ErrTooLarge)
}

func TestConcurrentPutViewRelease(t *testing.T) {
	s := openMemory(t, Options{SegmentBytes: 1 << 16})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			held := map[Pos]int{}
			for i := range 5000 {
				p, err := s.Put(text(i, rng.IntN(2000)), false, 1)
				if err != nil {
					t.Error(err)
					return
				}
				held[p] = i
				for p, i := range held {
					if m := s.View(p); !bytes.Equal(m.Body, text(i, len(m.Body)).Body) {
						t.Errorf("message %d reads as another", i)
						return
					}
					if rng.IntN(2) == 0 {
						break
					}
					s.Settled([]Settle{{Queue: 1, Seq: uint64(i), Pos: p}})
					delete(held, p)
				}
			}
			for p := range held {
				s.Release(p)
			}
		})
	}
	wg.Wait()
	require.Zero(t, s.Stats().Messages)
	require.Equal(t, 1, s.Stats().Segments)
}

func TestNoAllocationPerMessage(t *testing.T) {
	s := openMemory(t, Options{})
	m := text(1, 100)
	settle := make([]Settle, 1)
	enqueue := make([]Enqueue, 1)
	allocs := testing.AllocsPerRun(1000, func() {
		p, _ := s.Put(m, false, 1)
		enqueue[0] = Enqueue{Queue: 1, Seq: 1, Pos: p}
		s.Enqueued(enqueue)
		s.View(p)
		settle[0] = Settle{Queue: 1, Seq: 1, Pos: p}
		s.Settled(settle)
	})
	require.Zero(t, allocs)
}
