package store

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
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

func TestSegmentsGoWithTheirLastReference(t *testing.T) {
	s := openMemory(t, Options{SegmentBytes: 1 << 16})
	var positions []Pos
	for i := range 1000 {
		p, err := s.Put(text(i, 1000), false, 2)
		require.NoError(t, err)
		positions = append(positions, p)
	}
	require.Equal(t, int64(2000), s.figures().Messages)
	full := s.Stats().Segments
	for _, p := range positions {
		s.Release(p)
	}
	require.Equal(t, full, s.Stats().Segments)
	for _, p := range positions {
		s.Release(p)
	}
	require.Equal(t, 1, s.Stats().Segments, "only the one that is appended to")
	require.Zero(t, s.figures().Messages)
}

// slowDisk accepts transient messages only as the test decides.
type slowDisk struct {
	fileSystem
	answers chan error
}

func (d *slowDisk) Create(name string, size int64) (file, error) {
	if name == spillTemp {
		if err := <-d.answers; err != nil {
			return nil, err
		}
	}
	return d.fileSystem.Create(name, size)
}

// While the disk does not take what is in memory, publishers of transient messages wait at
// some point. Dead-lettering goes on. When the disk is full everybody goes on.
func TestTransientPublishersWaitForTheDisk(t *testing.T) {
	disk := &slowDisk{newCrashDisk(), make(chan error)}
	tune := tiny(SyncGroup)
	tune.overflow = 1 << 16
	s, _, err := openOn(disk, tune, &Options{})
	require.NoError(t, err)
	put := func() {
		if _, err := s.Put(text(1, 500), false, 1); err != nil {
			t.Error(err)
		}
	}
	var published atomic.Int64
	fill := func(n int) <-chan struct{} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range n {
				put()
				published.Add(1)
			}
		}()
		return done
	}
	const many = 1000
	done := fill(many)
	waits := func() bool {
		s.volatile.mu.Lock()
		defer s.volatile.mu.Unlock()
		return s.volatile.resident > s.volatile.overflow && !s.volatile.diskStuck
	}
	require.Eventually(t, waits, waitFor, tick)
	require.Never(t, func() bool { return published.Load() >= many/2 }, 50*time.Millisecond, tick)
	for i := range 2 * many {
		_, err := s.PutMoved(text(i, 500), false, 1)
		require.NoError(t, err)
	}
	select {
	case <-done:
		t.Fatal("published while the disk took nothing")
	case disk.answers <- unix.ENOSPC:
	}
	<-done // memory has its own limit
	require.EqualValues(t, many, published.Load())

	close(disk.answers) // it takes everything
	put()
	require.Eventually(t, func() bool { put(); return !waits() && s.figures().ResidentBytes <= 1<<16 }, waitFor, tick)
	require.NoError(t, s.Close())
}

// Close does not wait for a publisher that waits for the disk.
func TestCloseWhileTransientPublishersWait(t *testing.T) {
	disk := &slowDisk{newCrashDisk(), make(chan error)}
	tune := tiny(SyncGroup)
	tune.overflow = 1 << 16
	s, _, err := openOn(disk, tune, &Options{})
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		for {
			if _, err := s.Put(text(1, 500), false, 1); err != nil {
				ended <- err
				return
			}
		}
	}()
	require.Eventually(t, func() bool { return s.figures().ResidentBytes > 1<<16 }, waitFor, tick)
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	require.ErrorIs(t, <-ended, errClosed)
	close(disk.answers)
	require.NoError(t, <-closed)
}

func TestTooLarge(t *testing.T) {
	s := openMemory(t, Options{})
	_, err := s.Put(Message{RoutingKey: make([]byte, 256)}, false, 1)
	require.ErrorIs(t, err, errTooLarge)
}

func TestConcurrentPutViewRelease(t *testing.T) {
	s := openMemory(t, Options{SegmentBytes: 1 << 16})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(g), 1))
			putter, held := s.NewPutter(), map[Pos]int{}
			for i := range 5000 {
				m := text(i, rng.IntN(2000))
				p, err := putter.Put(&m, false, 1)
				if err != nil {
					t.Error(err)
					return
				}
				if held[p] = i; rng.IntN(20) != 0 {
					continue
				}
				putter.End()
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
			putter.End()
			for p := range held {
				s.Release(p)
			}
		})
	}
	wg.Wait()
	require.Zero(t, s.figures().Messages)
	require.Equal(t, 1, s.Stats().Segments)
}

func TestNoAllocationPerMessage(t *testing.T) {
	s := openMemory(t, Options{})
	putter := s.NewPutter()
	m := text(1, 100)
	settle := make([]Settle, 50)
	enqueue := make([]Enqueue, 50)
	allocs := testing.AllocsPerRun(1000, func() {
		for i := range enqueue {
			p, _ := putter.Put(&m, false, 1)
			enqueue[i] = Enqueue{Queue: 1, Seq: 1, Pos: p}
			settle[i] = Settle{Queue: 1, Seq: 1, Pos: p}
		}
		putter.End()
		s.Enqueued(enqueue)
		s.View(enqueue[0].Pos)
		s.Settled(settle)
	})
	require.Zero(t, allocs)
}
