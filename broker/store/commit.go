package store

import (
	"fmt"
	"time"

	"curfew/broker/deadline"
)

// SyncMode determines when Commit calls back.
type SyncMode uint8

const (
	// SyncGroup: once the data is on disk. Everyone who waits at the same time shares one
	// write and one sync. This is the default.
	SyncGroup SyncMode = iota
	// SyncInterval: once the operating system has the data; it is synced every 100 ms. A
	// crash of the process loses nothing; a crash of the machine loses what is younger.
	SyncInterval
	// SyncNever: once the operating system has the data, which syncs when it likes. Only
	// whole segments are synced.
	SyncNever
)

// ParseSyncMode reads "group", "interval" or "never".
func ParseSyncMode(s string) (SyncMode, error) {
	switch s {
	case "group":
		return SyncGroup, nil
	case "interval":
		return SyncInterval, nil
	case "never":
		return SyncNever, nil
	}
	return 0, fmt.Errorf("store: sync mode %q is not group, interval or never", s)
}

// The committer is one goroutine that brings memory to disk. It sleeps until somebody waits
// in Commit and then acts at once. What is appended while it writes and syncs becomes the
// next batch, so batches grow with the load and no delay has to be chosen. What nobody
// waits for is written after a short linger, or as soon as there is a burst of it, and is
// synced lazily.
//
//	         append                  Commit, burst or linger over
//	idle ─────────────► lingering ─────────────────┐
//	 ▲ └──────────────── Commit ──────────────────┐│
//	 │                                            ▼▼
//	 └── callbacks ◄── fdatasync ◄── write ◄── hand over
//
// A mark is written with each batch. It says up to which position everything had been
// synced. In recovery, invalid records below the highest mark are damage; above it they are
// a torn tail.
type commitState struct {
	bell              chan struct{}
	sleep             sleep
	waiters           []func(error) // wait for what the mode promises
	forced            []func(error) // wait for the disk, whatever the mode
	calling           bool          // callbacks are being made
	askedAt           time.Time     // since when the committer has been waiting for the disk, or is about to; zero: it sleeps
	confirmed, synced Pos
	failed            chan error
	ended             chan struct{} // closed when the committer has returned
}

type sleep uint8

const (
	awake sleep = iota
	idle
	lingering
)

// wakeCommitterLocked wakes the committer.
func (j *journal) wakeCommitterLocked() {
	j.commit.sleep = awake
	deadline.Wake(j.commit.bell)
}

// Commit calls fn once everything handed in before is as safe as the sync mode promises, or
// with the error that prevents it. If there is nothing to wait for, it calls fn before it
// returns. Calls are made in the order of Commit. They must not block and must not call
// Put.
func (s *Store) Commit(fn func(error)) {
	j := s.journal
	if j == nil {
		fn(nil)
		return
	}
	j.mu.Lock()
	c := &j.commit
	err := j.usableLocked()
	if err != nil || len(c.waiters) == 0 && !c.calling && j.fact <= c.confirmed {
		j.mu.Unlock()
		fn(err)
		return
	}
	c.waiters = append(c.waiters, fn)
	if c.sleep != awake {
		j.wakeCommitterLocked()
	}
	j.mu.Unlock()
}

// Synced is Commit for the disk, whatever the sync mode promises.
func (s *Store) Synced(fn func(error)) {
	j := s.journal
	if j == nil || j.opts.mode == SyncGroup {
		s.Commit(fn)
		return
	}
	j.mu.Lock()
	if err := j.usableLocked(); err != nil {
		j.mu.Unlock()
		fn(err)
		return
	}
	j.forceLocked(fn)
	j.mu.Unlock()
}

// forceLocked makes the committer call fn once everything appended before is on disk.
func (j *journal) forceLocked(fn func(error)) {
	j.commit.forced = append(j.commit.forced, fn)
	j.wakeCommitterLocked()
}
