package store

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	waitFor = time.Minute
	tick    = time.Millisecond
)

// On a full disk publishing is refused. Removing messages still works and makes room in the
// end.
func TestDiskFull(t *testing.T) {
	disk := newCrashDisk()
	disk.space = 40 << 12
	var reported atomic.Int32
	tune := tiny(SyncGroup)
	tune.onFull = func(why error) {
		if why != nil {
			reported.Add(1)
		} else {
			reported.Add(-1)
		}
	}
	s, _, err := openOn(disk, tune, &Options{})
	require.NoError(t, err)
	var held []Enqueue
	for seq := uint64(1); ; seq++ {
		p, err := s.Put(text(int(seq), 500), true, 1)
		if errors.Is(err, ErrFull) {
			break
		}
		require.NoError(t, err)
		held = append(held, Enqueue{Queue: 1, Seq: seq, Pos: p, Durable: true})
		s.Enqueued(held[len(held)-1:])
	}
	require.True(t, s.journal.spare.isFull())
	commit(t, s)
	require.Eventually(t, func() bool { return reported.Load() == 1 }, waitFor, tick)

	// Moves may use the reserve.
	for i, e := range held[:10] {
		p, err := s.PutMoved(text(1000+i, 100), true, 1)
		require.NoError(t, err)
		s.Moved(Settle{Queue: 1, Seq: e.Seq, Pos: e.Pos, Durable: true}, []Enqueue{{Queue: 2, Seq: uint64(i + 1), Pos: p, Durable: true}})
	}
	commit(t, s)
	_, err = s.Put(text(1, 10), true, 1)
	require.ErrorIs(t, err, ErrFull)
	transient, err := s.Put(text(1, 10), false, 1)
	require.NoError(t, err, "only the disk is full")
	s.Release(transient)

	// A restart finds the same.
	require.NoError(t, s.Close())
	disk = disk.afterCrash(rand.New(rand.NewPCG(1, 1)), 0)
	s, r, err := reopen(disk)
	require.NoError(t, err)
	require.Len(t, r.Queues, 2)
	require.Len(t, r.Queues[0].Entries, len(held)-10)
	for _, e := range r.Queues[0].Entries {
		s.Settled([]Settle{{Queue: 1, Seq: e.Seq, Pos: e.Pos, Durable: true}})
		require.Eventually(t, func() bool { return s.figures().SpareBytes > 0 }, waitFor, tick)
	}
	commit(t, s)
	require.Eventually(t, func() bool { return !s.journal.spare.isFull() }, waitFor, tick)
	_, err = s.Put(text(1, 500), true, 1)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// Space that appears from outside is noticed.
func TestDiskFreedFromOutside(t *testing.T) {
	disk := newCrashDisk()
	disk.space = 4 << 12
	s, _, err := reopen(disk)
	require.NoError(t, err)
	require.Eventually(t, s.journal.spare.isFull, waitFor, tick)
	disk.mu.Lock()
	disk.space = 1 << 20
	disk.mu.Unlock()
	require.Eventually(t, func() bool { return !s.journal.spare.isFull() }, waitFor, tick)
	p, err := s.Put(text(1, 500), true, 0)
	require.NoError(t, err)
	s.Release(p)
	require.NoError(t, s.Close())
}

// When the whole reserve is used up, settlements wait in memory for space.
func TestReserveUsedUp(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	p, err := s.Put(text(1, 100), true, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	commit(t, s)
	disk.mu.Lock()
	disk.space = disk.used()
	disk.mu.Unlock()
	s.Retain(p, 2000)
	done := make(chan error, 1)
	for seq := uint64(2); seq < 2000; seq++ {
		s.Settled([]Settle{{Queue: 1, Seq: seq * 2, Pos: p, Durable: true}})
	}
	s.Settled([]Settle{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	s.Commit(func(err error) { done <- err })
	require.Eventually(t, func() bool { return s.figures().SpareBytes < 0 }, waitFor, tick)
	require.Empty(t, done)
	disk.mu.Lock()
	disk.space = 0
	disk.mu.Unlock()
	require.NoError(t, <-done)
	require.NoError(t, s.Err())
	require.NoError(t, s.Close())
	s, r, err := reopen(disk)
	require.NoError(t, err)
	require.Empty(t, r.Queues)
	require.NoError(t, s.Close())
}

func TestCloseOnFullDisk(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	p, err := s.Put(text(1, 100), true, 1)
	require.NoError(t, err)
	s.Retain(p, 1999)
	commit(t, s)
	disk.mu.Lock()
	disk.space = disk.used()
	disk.mu.Unlock()
	for seq := uint64(1); seq < 2000; seq++ {
		s.Settled([]Settle{{Queue: 1, Seq: seq * 2, Pos: p, Durable: true}})
	}
	done := make(chan error, 1)
	s.Commit(func(err error) { done <- err })
	require.Eventually(t, func() bool { return s.figures().SpareBytes < 0 }, waitFor, tick)
	require.ErrorIs(t, s.Close(), ErrFull)
	require.ErrorIs(t, <-done, ErrFull)
}

// A failed sync is not tried again: the system may have dropped the data.
func TestSyncFails(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	p, err := s.Put(text(1, 100), true, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	commit(t, s)

	disk.mu.Lock()
	disk.failSyncs, disk.syncs = 1, 0
	disk.mu.Unlock()
	second, err := s.Put(text(2, 100), true, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 2, Pos: second, Durable: true}})
	done := make(chan error, 2)
	s.Commit(func(err error) { done <- err })
	require.ErrorIs(t, <-done, unix.EIO)
	require.ErrorIs(t, <-s.Failed(), unix.EIO)
	require.ErrorIs(t, s.Err(), unix.EIO)
	s.Commit(func(err error) { done <- err })
	require.ErrorIs(t, <-done, unix.EIO)
	_, err = s.Put(text(3, 100), true, 1)
	require.ErrorIs(t, err, unix.EIO)

	require.Equal(t, text(1, 100), s.View(p), "messages can still be read")
	s.Settled([]Settle{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	require.ErrorIs(t, s.Close(), unix.EIO)
	require.Equal(t, 1, disk.syncs)

	s, r, err := reopen(disk.afterCrash(rand.New(rand.NewPCG(1, 1)), 0))
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, seqs(r))
	require.NoError(t, s.Close())
}

// Without a file descriptor for the next segment's file durable messages are refused, the
// reason is reported, and what was appended is saved once there is a descriptor again.
func TestNoFileDescriptors(t *testing.T) {
	disk := newCrashDisk()
	reported := make(chan error, 10)
	tune := tiny(SyncGroup)
	tune.onFull = func(why error) { reported <- why }
	s, _, err := openOn(disk, tune, &Options{})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.figures().SpareBytes == tune.reserve+tune.ahead }, waitFor, tick)
	disk.mu.Lock()
	disk.noFiles = true
	disk.mu.Unlock()
	done := make(chan error, 1)
	for seq := 1; ; seq++ { // beyond the segments that already have files
		p, err := s.Put(text(seq, 500), true, 1)
		if errors.Is(err, ErrFull) {
			break
		}
		require.NoError(t, err)
		s.Enqueued([]Enqueue{{Queue: 1, Seq: uint64(seq), Pos: p, Durable: true}})
		if seq == 1 {
			s.Commit(func(err error) { done <- err })
		}
	}
	why := <-reported
	require.True(t, NoFiles(why), why)
	require.True(t, s.journal.spare.isFull())
	require.Empty(t, done)
	disk.mu.Lock()
	disk.noFiles = false
	disk.mu.Unlock()
	require.NoError(t, <-done)
	require.NoError(t, <-reported)
	require.Eventually(t, func() bool { return !s.journal.spare.isFull() }, waitFor, tick)
	_, err = s.Put(text(1, 500), true, 0)
	require.NoError(t, err)
	require.Empty(t, reported)
	require.NoError(t, s.Close())
}
