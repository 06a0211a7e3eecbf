package store

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"
)

// batch is what the committer takes over at one time.
type batch struct {
	parts           []part
	copies          *sync.WaitGroup // records in them that are being written; nil: none
	waiters, forced []func(error)
	bytes           int
	toDisk          bool // to be synced, not only written
	synced          Pos  // written in its mark
	end             Pos
}

// committer is the state of the committer's goroutine.
type committer struct {
	j *journal
	batch
	alarm               *time.Timer
	lingerUntil, syncAt time.Time
	dirty               *segment // written to, not synced since
	dirtySince          time.Time
	written             Pos // the files are written up to here
	safe                Pos // they are synced up to here
	announced           Pos // synced up to here according to the last mark
}

// run works until the journal is shut or has failed.
func (c *committer) run() {
	defer close(c.j.commit.ended)
	resumed()
	defer c.alarm.Stop()
	for c.gather() {
		err := c.save()
		if err != nil {
			err = c.j.fail(err)
		}
		c.confirm(err)
	}
}

// gather waits for work and takes it over. It returns false at the end.
func (c *committer) gather() bool {
	for {
		c.j.mu.Lock()
		wait, due := c.dueLocked()
		if due {
			more := c.takeOverLocked()
			c.j.mu.Unlock()
			return more
		}
		c.j.mu.Unlock()
		if wait == 0 {
			<-c.j.commit.bell
			resumed()
			continue
		}
		c.alarm.Reset(wait)
		select {
		case <-c.j.commit.bell:
			c.alarm.Stop()
		case <-c.alarm.C:
		}
		resumed()
	}
}

// dueLocked reports whether to act now, else how long to sleep; 0 means until the bell.
func (c *committer) dueLocked() (wait time.Duration, due bool) {
	if len(c.j.commit.waiters) > 0 || len(c.j.commit.forced) > 0 || c.j.fresh >= c.j.opts.burst || c.j.closed || c.j.err != nil {
		return 0, true
	}
	c.j.commit.sleep = idle
	now := time.Now()
	if c.j.fresh > 0 {
		c.j.commit.sleep = lingering
		if c.lingerUntil.IsZero() {
			c.lingerUntil = now.Add(c.j.opts.linger)
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

// takeOverLocked moves the pending work into the batch.
func (c *committer) takeOverLocked() bool {
	j := c.j
	lazy := !c.syncAt.IsZero() && !time.Now().Before(c.syncAt)
	if (lazy || j.closed) && c.dirty == nil && c.announced < j.commit.synced && j.active != nil && j.hasRoomLocked(0) {
		j.markLocked()
	}
	if j.err != nil || j.closed && len(j.commit.waiters)+len(j.commit.forced)+j.fresh == 0 && c.dirty == nil {
		c.abandonLocked()
		return false
	}
	c.lingerUntil = time.Time{}
	if s := j.active; s != nil && s.used > j.from {
		j.tails = append(j.tails, part{seg: s, from: j.from, to: s.used})
		j.from, j.marked = s.used, false
		c.end = makePos(false, s.number, s.used)
	}
	c.parts, j.tails = j.tails, c.parts[:0]
	c.copies, j.copies = j.copies, nil
	c.waiters, j.commit.waiters = j.commit.waiters, c.waiters[:0]
	c.forced, j.commit.forced = j.commit.forced, c.forced[:0]
	c.bytes, j.fresh = j.fresh, 0
	c.synced = j.commit.synced
	c.toDisk = len(c.forced) > 0 || lazy || j.closed || len(c.waiters) > 0 && j.opts.mode == SyncGroup
	j.commit.calling = true
	j.commit.sleep = awake
	j.commit.askedAt = time.Now()
	return true
}

// abandonLocked notifies everyone who waits that nothing more will be done. It releases mu
// while it does so.
func (c *committer) abandonLocked() {
	err := c.j.usableLocked()
	waiters := append(c.j.commit.waiters, c.j.commit.forced...)
	c.j.commit.waiters, c.j.commit.forced = nil, nil
	c.j.mu.Unlock()
	for _, fn := range waiters {
		fn(err)
	}
	c.j.mu.Lock()
}

// save writes the batch, and syncs it if that is due.
func (c *committer) save() error {
	if c.copies != nil {
		c.copies.Wait()
	}
	if len(c.parts) > 0 {
		if err := c.j.define(); err != nil {
			return err
		}
	}
	for i := range c.parts {
		if err := c.attachTo(c.parts[i].seg); err != nil {
			return err
		}
	}
	quiet := c.bytes <= markBytes
	for i := range c.parts {
		if err := c.write(&c.parts[i]); err != nil {
			return err
		}
		if !quiet {
			if c.dirty == nil {
				c.dirtySince = time.Now()
			}
			c.dirty = c.parts[i].seg
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
	c.scheduleSync()
	return nil
}

// attachTo gives a segment its file. If it may have to wait for one, what was written before is
// synced first, so that nobody waits for that as well (emptyDead).
func (c *committer) attachTo(s *segment) error {
	if s.file == nil && c.dirty != nil && !c.j.spare.has(s.number) {
		if err := c.syncFile(); err != nil {
			return err
		}
		c.j.mu.Lock()
		c.j.commit.synced = max(c.j.commit.synced, c.safe)
		c.j.mu.Unlock()
	}
	return c.attach(s)
}

// scheduleSync sets when to act without being woken: to sync, or else to write a last mark.
func (c *committer) scheduleSync() {
	switch {
	case c.dirty != nil && c.j.opts.lazy > 0:
		c.syncAt = c.dirtySince.Add(c.j.opts.lazy)
	case c.dirty == nil && c.bytes > markBytes:
		c.syncAt = time.Now().Add(c.j.opts.announce)
	default:
		c.syncAt = time.Time{}
	}
}

func (c *committer) write(p *part) error {
	c.stamp(p)
	if _, err := p.seg.file.WriteAt(p.seg.mem[p.from:p.to], int64(p.from)); err != nil {
		return fmt.Errorf("write segment %d: %w", p.seg.number, err)
	}
	c.written = makePos(false, p.seg.number, p.to)
	if p.ended {
		c.written = makePos(false, p.seg.number+1, 0)
	}
	c.j.mu.Lock()
	c.j.unsaved -= p.to - p.from
	c.j.commit.askedAt = time.Now() // the disk has answered; the next request starts now
	c.j.space.Broadcast()
	c.j.mu.Unlock()
	return nil
}

// stamp fills in the mark and the checksums. Views read the same records, but not these
// fields.
func (c *committer) stamp(p *part) {
	mem, at := p.seg.mem, max(p.from, fileHeader)
	binary.LittleEndian.PutUint64(mem[at+recordHeader:], uint64(c.synced))
	binary.LittleEndian.PutUint64(mem[at+recordHeader+8:], uint64(p.to-at-markBytes))
	for at < p.to {
		_, n := header(mem[at:])
		rec := mem[at : at+n]
		binary.LittleEndian.PutUint32(rec, checksum(c.j.id, makePos(false, p.seg.number, at), rec))
		at += align(n)
	}
}

// syncFile syncs the segment that was written to last.
func (c *committer) syncFile() error {
	s := c.dirty
	began := time.Now()
	if err := s.file.Sync(); err != nil {
		return fmt.Errorf("sync segment %d: %w", s.number, err)
	}
	c.j.opts.onSync(time.Since(began))
	c.dirty, c.safe = nil, c.written
	return nil
}

// confirm publishes the outcome of the batch and calls everyone who waited.
func (c *committer) confirm(err error) {
	c.j.mu.Lock()
	if err == nil {
		c.publishLocked()
	}
	c.j.commit.askedAt = time.Time{}
	c.j.mu.Unlock()
	for _, fn := range c.waiters {
		fn(err)
	}
	for _, fn := range c.forced {
		fn(err)
	}
	clear(c.waiters)
	clear(c.forced)
	c.j.mu.Lock()
	if err == nil && (c.dirty == nil || c.j.opts.mode != SyncGroup) {
		c.j.commit.confirmed = c.end
	}
	c.j.commit.calling = false
	c.j.mu.Unlock()
}

// publishLocked records what is on disk now.
func (c *committer) publishLocked() {
	for i := range c.parts {
		if p := &c.parts[i]; p.ended {
			p.seg.complete = true
			c.j.wake()
		}
	}
	c.j.commit.synced = max(c.j.commit.synced, c.safe)
	clear(c.parts)
}
