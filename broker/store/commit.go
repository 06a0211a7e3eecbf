package store

import (
	"encoding/binary"
	"fmt"
	"time"
)

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

// sync returns once all that was appended before is on the disk.
func (j *journal) sync() error {
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return err
	}
	done := make(chan error, 1)
	j.commit.forced = append(j.commit.forced, func(err error) { done <- err })
	j.ring()
	j.mu.Unlock()
	return <-done
}

// batch is what the committer takes over at once.
type batch struct {
	parts           []part
	waiters, forced []func(error)
	bytes           int
	toDisk          bool
	synced          Pos // for the mark
	end             Pos
}

// committer is the state of the committer's goroutine.
type committer struct {
	*journal
	batch
	lingerUntil, syncAt time.Time
	dirty               *segment // written to and not synced since
	dirtySince          time.Time
	announced           Pos // the last mark's
}

func (j *journal) runCommitter() {
	defer close(j.commit.ended)
	c := &committer{journal: j}
	for c.gather() {
		err := c.save()
		if err != nil {
			c.fail(err)
		}
		c.confirm(err)
	}
}

// gather waits for work and takes it over. It returns false at the end.
func (c *committer) gather() bool {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		c.mu.Lock()
		wait, due := c.due()
		if due {
			more := c.takeOver()
			c.mu.Unlock()
			return more
		}
		c.mu.Unlock()
		if wait == 0 {
			<-c.commit.bell
			continue
		}
		timer.Reset(wait)
		select {
		case <-c.commit.bell:
		case <-timer.C:
		}
	}
}

// due reports whether to act now, else how long to sleep; 0: until the bell. The
// caller holds mu.
func (c *committer) due() (wait time.Duration, due bool) {
	if len(c.commit.waiters) > 0 || len(c.commit.forced) > 0 || c.fresh >= c.opts.burst || c.closed || c.err != nil {
		return 0, true
	}
	c.commit.sleep = idle
	now := time.Now()
	if c.fresh > 0 {
		c.commit.sleep = lingering
		if c.lingerUntil.IsZero() {
			c.lingerUntil = now.Add(c.opts.linger)
		}
		if wait = c.lingerUntil.Sub(now); wait <= 0 {
			return 0, true
		}
	}
	if !c.syncAt.IsZero() {
		left := c.syncAt.Sub(now)
		if left <= 0 {
			return 0, true
		}
		if wait == 0 || left < wait {
			wait = left
		}
	}
	return wait, false
}

// takeOver moves what is to be done into the batch. The caller holds mu.
func (c *committer) takeOver() bool {
	j := c.journal
	if j.err != nil || j.closed && len(j.commit.waiters)+len(j.commit.forced)+j.fresh == 0 && c.dirty == nil {
		c.abandon()
		return false
	}
	lazy := !c.syncAt.IsZero() && !time.Now().Before(c.syncAt)
	if lazy && c.dirty == nil && c.announced < j.commit.synced && j.active != nil && j.holds(0) {
		j.mark()
	}
	c.lingerUntil = time.Time{}
	if s := j.active; s != nil && s.used > j.from {
		j.tails = append(j.tails, part{seg: s, from: j.from, to: s.used})
		j.from, j.marked = s.used, false
		c.end = makePos(false, s.number, s.used)
	}
	c.parts, j.tails = j.tails, c.parts[:0]
	c.waiters, j.commit.waiters = j.commit.waiters, c.waiters[:0]
	c.forced, j.commit.forced = j.commit.forced, c.forced[:0]
	c.bytes, j.fresh = j.fresh, 0
	c.synced = j.commit.synced
	c.toDisk = len(c.forced) > 0 || lazy || j.closed || len(c.waiters) > 0 && j.opts.mode == SyncGroup
	j.commit.calling = true
	j.commit.sleep = awake
	return true
}

// abandon tells those who wait that nothing more will be done. The caller holds
// mu, which is released for that.
func (c *committer) abandon() {
	err := c.usable()
	waiters := append(c.commit.waiters, c.commit.forced...)
	c.commit.waiters, c.commit.forced = nil, nil
	c.mu.Unlock()
	for _, fn := range waiters {
		fn(err)
	}
	c.mu.Lock()
}

// save writes the batch and syncs it if that is due.
func (c *committer) save() error {
	for i := range c.parts {
		if err := c.attach(c.parts[i].seg); err != nil {
			return err
		}
	}
	quiet := c.bytes <= markBytes
	for i := range c.parts {
		if err := c.write(&c.parts[i]); err != nil {
			return err
		}
		if !quiet {
			c.soil(c.parts[i].seg)
		}
		if c.parts[i].ended {
			if err := c.syncFile(); err != nil {
				return err
			}
		}
	}
	if len(c.parts) > 0 {
		c.announced = c.synced
	}
	if c.toDisk && c.dirty != nil {
		if err := c.syncFile(); err != nil {
			return err
		}
	}
	c.plan()
	return nil
}

// plan sets when to come back without being called: to sync, or else to write a
// last mark.
func (c *committer) plan() {
	switch {
	case c.dirty != nil && c.opts.lazy > 0:
		c.syncAt = c.dirtySince.Add(c.opts.lazy)
	case c.dirty == nil && c.bytes > markBytes:
		c.syncAt = time.Now().Add(c.opts.announce)
	default:
		c.syncAt = time.Time{}
	}
}

func (c *committer) soil(s *segment) {
	if c.dirty == nil {
		c.dirtySince = time.Now()
	}
	c.dirty = s
}

func (c *committer) write(p *part) error {
	c.seal(p)
	if _, err := p.seg.file.WriteAt(p.seg.mem[p.from:p.to], int64(p.from)); err != nil {
		return fmt.Errorf("write segment %d: %w", p.seg.number, err)
	}
	c.mu.Lock()
	c.unsaved -= p.to - p.from
	c.space.Broadcast()
	c.mu.Unlock()
	return nil
}

// seal fills in the mark and the checksums. Views read the same records, but not
// these fields.
func (c *committer) seal(p *part) {
	mem, at := p.seg.mem, max(p.from, fileHeader)
	binary.LittleEndian.PutUint64(mem[at+recordHeader:], uint64(c.synced))
	binary.LittleEndian.PutUint64(mem[at+recordHeader+8:], uint64(p.to-at-markBytes))
	for at < p.to {
		_, n := header(mem[at:])
		rec := mem[at : at+n]
		binary.LittleEndian.PutUint32(rec, checksum(c.id, makePos(false, p.seg.number, at), rec))
		at += align(n)
	}
}

// syncFile syncs the segment written to last.
func (c *committer) syncFile() error {
	s := c.dirty
	began := time.Now()
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync segment %d: %w", s.number, err)
	}
	c.opts.onSync(time.Since(began))
	c.dirty = nil
	return nil
}

// confirm publishes the outcome of the batch and calls those who waited.
func (c *committer) confirm(err error) {
	c.mu.Lock()
	if err == nil {
		c.published()
	}
	c.mu.Unlock()
	for _, fn := range c.waiters {
		fn(err)
	}
	for _, fn := range c.forced {
		fn(err)
	}
	clear(c.waiters)
	clear(c.forced)
	c.mu.Lock()
	if err == nil && (c.dirty == nil || c.opts.mode != SyncGroup) {
		c.commit.confirmed = c.end
	}
	c.commit.calling = false
	c.mu.Unlock()
}

// published notes what is on the disk now. The caller holds mu.
func (c *committer) published() {
	for i := range c.parts {
		p := &c.parts[i]
		if p.ended {
			p.seg.complete = true
			c.commit.synced = makePos(false, p.seg.number+1, 0)
			c.wake()
		}
	}
	if c.dirty == nil && len(c.parts) > 0 {
		c.commit.synced = max(c.commit.synced, c.end)
	}
	clear(c.parts)
}
