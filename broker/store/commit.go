package store

import "fmt"

// SyncMode says when Commit calls back.
type SyncMode uint8

const (
	// SyncGroup: once the disk has it. Whoever waits at that time shares one
	// write and one sync. The default.
	SyncGroup SyncMode = iota
	// SyncInterval: once the system has it; the disk follows every 100 ms. A
	// crash of the process loses nothing, one of the machine what is younger.
	SyncInterval
	// SyncNever: once the system has it, which syncs when it likes. Only whole
	// segments are synced.
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
	return 0, fmt.Errorf("store: sync mode %q is none of group, interval, never", s)
}

// The committer is one goroutine that turns memory into disk. It sleeps until
// somebody waits in Commit and then acts at once; what is appended while it
// writes and syncs gathers and is the next batch, so batches grow with the load
// and no delay is ever chosen. What nobody waits for is written after a short
// linger, or as soon as it is a burst, and synced lazily.
//
//	         append                  Commit, burst or linger over
//	idle ─────────────► lingering ─────────────────┐
//	 ▲ └──────────────── Commit ──────────────────┐│
//	 │                                            ▼▼
//	 └── callbacks ◄── fdatasync ◄── write ◄── hand over
//
// A mark is written with each batch and says up to where all was synced before:
// in recovery, damage below the highest mark is damage, above it a torn tail.
type committing struct {
	bell              chan struct{}
	sleep             sleep
	waiters           []func(error) // for what the mode promises
	forced            []func(error) // for the disk, whatever the mode
	calling           bool          // callbacks are being made
	confirmed, synced Pos
	failed            chan error
	ended             chan struct{} // closed when the committer has returned
}

func (c *committing) init() {
	c.bell = make(chan struct{}, 1)
	c.failed = make(chan error, 1)
	c.ended = make(chan struct{})
}

type sleep uint8

const (
	awake sleep = iota
	idle
	lingering
)

// ring wakes the committer. The caller holds mu.
func (j *journal) ring() {
	j.commit.sleep = awake
	select {
	case j.commit.bell <- struct{}{}:
	default:
	}
}

// appended wakes the committer if what was appended is reason to. The caller
// holds mu.
func (c *committing) appended(j *journal) {
	if c.sleep == idle || c.sleep == lingering && j.fresh >= j.opts.burst {
		j.ring()
	}
}

// whenSafe is Store.Commit.
func (j *journal) whenSafe(fn func(error)) {
	j.mu.Lock()
	c := &j.commit
	err := j.usable()
	if err != nil || len(c.waiters) == 0 && !c.calling && j.fact <= c.confirmed {
		j.mu.Unlock()
		fn(err)
		return
	}
	c.waiters = append(c.waiters, fn)
	if c.sleep != awake {
		j.ring()
	}
	j.mu.Unlock()
}

// whenSynced is Store.Synced.
func (j *journal) whenSynced(fn func(error)) {
	if j.opts.mode == SyncGroup {
		j.whenSafe(fn)
		return
	}
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		fn(err)
		return
	}
	j.force(fn)
	j.mu.Unlock()
}

// force has fn called once all that was appended before is on the disk. The caller holds
// mu.
func (j *journal) force(fn func(error)) {
	j.commit.forced = append(j.commit.forced, fn)
	j.ring()
}

// sync returns once all that was appended before is on the disk.
func (j *journal) sync() error {
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return err
	}
	done := make(chan error, 1)
	j.force(func(err error) { done <- err })
	j.mu.Unlock()
	return <-done
}
