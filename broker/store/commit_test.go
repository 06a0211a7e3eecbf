package store

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCommitIsImmediateWhenNothingIsPending(t *testing.T) {
	s, _, err := reopen(newCrashDisk())
	require.NoError(t, err)
	defer s.Close()
	called := false
	s.Commit(func(err error) { called = err == nil })
	require.True(t, called)

	p, err := s.Put(text(1, 10), false, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p}})
	s.Settled([]Settle{{Queue: 1, Seq: 1, Pos: p}})
	called = false
	s.Commit(func(err error) { called = err == nil })
	require.True(t, called, "nothing durable was handed in")
}

func TestCommitsShareSyncsAndKeepTheirOrder(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	const n = 500
	var mu sync.Mutex
	var order []int
	all := make(chan struct{})
	for i := range n {
		p, err := s.Put(text(i, 100), true, 0)
		require.NoError(t, err)
		s.Release(p)
		s.Commit(func(err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				order = append(order, i)
			}
			if len(order) == n {
				close(all)
			}
		})
	}
	<-all
	for i := range n {
		require.Equal(t, i, order[i])
	}
	require.NoError(t, s.Close())
}

// While a sync is in progress the next batch gathers.
func TestGroupCommit(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.figures().SpareBytes >= s.journal.opts.reserve+s.journal.opts.ahead }, waitFor, tick)
	disk.mu.Lock() // the first commit's sync hangs
	disk.syncs = 0
	done := make(chan error, 100)
	for i := range 20 {
		p, err := s.Put(text(i, 100), true, 0)
		require.NoError(t, err)
		s.Release(p)
		s.Commit(func(err error) { done <- err })
	}
	disk.mu.Unlock()
	for range 20 {
		require.NoError(t, <-done)
	}
	require.LessOrEqual(t, disk.syncCount(), 3)
	require.NoError(t, s.Close())
}

// TestDiskWait: while the disk answers nothing, the store says for how long.
func TestDiskWait(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.figures().SpareBytes >= s.journal.opts.reserve+s.journal.opts.ahead }, waitFor, tick)
	require.Zero(t, s.DiskWait(), "nothing is asked of it")
	disk.mu.Lock() // writes and syncs hang
	p, err := s.Put(text(1, 100), true, 0)
	require.NoError(t, err)
	s.Release(p)
	done := make(chan error, 1)
	s.Commit(func(err error) { done <- err })
	require.Eventually(t, func() bool { return s.DiskWait() > 10*time.Millisecond }, waitFor, tick)
	disk.mu.Unlock()
	require.NoError(t, <-done)
	require.Eventually(t, func() bool { return s.DiskWait() == 0 }, waitFor, tick, "a last mark may be written")
	require.NoError(t, s.Close())
	require.Zero(t, new(Store).DiskWait(), "there is no disk")
}

// TestNewFolder: it has nothing of a store until something was saved there.
func TestNewFolder(t *testing.T) {
	disk := newCrashDisk()
	s, found, err := reopen(disk)
	require.NoError(t, err)
	require.True(t, found.New)
	defineNow(t, s, Definition{"k", []byte("v")})
	require.NoError(t, s.Close())
	s, found, err = reopen(disk)
	require.NoError(t, err)
	require.False(t, found.New)
	require.NoError(t, s.Close())
}

func (d *crashDisk) syncCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

func TestSyncModes(t *testing.T) {
	for mode, syncs := range map[SyncMode]bool{SyncGroup: true, SyncInterval: true, SyncNever: false} {
		disk := newCrashDisk()
		tune := tiny(mode)
		s, _, err := openOn(disk, tune, &Options{Sync: mode})
		require.NoError(t, err)
		before := disk.syncCount()
		p, err := s.Put(text(1, 100), true, 0)
		require.NoError(t, err)
		s.Release(p)
		commit(t, s)
		if syncs {
			require.Eventually(t, func() bool { return disk.syncCount() > before }, waitFor, tick)
		} else {
			require.Equal(t, before, disk.syncCount())
		}
		require.NoError(t, s.Close())
		require.Greater(t, disk.syncCount(), before, "closing syncs")
	}
}

// What nobody waits for is written and synced as well.
func TestLazySync(t *testing.T) {
	disk := newCrashDisk()
	var syncs sync.WaitGroup
	syncs.Add(1)
	once := sync.OnceFunc(syncs.Done)
	t1 := tiny(SyncGroup)
	t1.onSync = func(time.Duration) { once() }
	s, _, err := openOn(disk, t1, &Options{})
	require.NoError(t, err)
	p, err := s.Put(text(1, 100), true, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	syncs.Wait()
	require.NoError(t, s.Close())
}

func TestParseSyncMode(t *testing.T) {
	for text, want := range map[string]SyncMode{"group": SyncGroup, "interval": SyncInterval, "never": SyncNever} {
		mode, err := ParseSyncMode(text)
		require.NoError(t, err)
		require.Equal(t, want, mode)
	}
	_, err := ParseSyncMode("sometimes")
	require.ErrorContains(t, err, "sometimes")
}

// A message that is larger than everything allocated ahead gets its space.
func TestOversizedMessage(t *testing.T) {
	disk := newCrashDisk()
	s, _, err := reopen(disk)
	require.NoError(t, err)
	big := text(1, 1<<18)
	p, err := s.Put(big, true, 1)
	require.NoError(t, err)
	s.Enqueued([]Enqueue{{Queue: 1, Seq: 1, Pos: p, Durable: true}})
	commit(t, s)
	require.NoError(t, s.Close())
	s, r, err := reopen(disk)
	require.NoError(t, err)
	require.Equal(t, []uint64{1}, seqs(r))
	require.Equal(t, big, s.View(p))
	require.NoError(t, s.Close())

	disk.space = disk.used() + 1<<14
	s, _, err = reopen(disk)
	require.NoError(t, err)
	_, err = s.Put(big, true, 1)
	require.ErrorIs(t, err, ErrFull)
	require.NoError(t, s.Close())
}
