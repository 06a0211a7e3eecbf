package store

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"go.uber.org/zap"
)

// spareFiles are the files of the segments to come. They are made ahead, with their space
// allocated and their names durable. So the committer neither waits for the directory nor
// finds the disk full, and there is a reserve for what must be written on a full disk:
// settlements and moves. All but filesMu is guarded by the journal's mu.
type spareFiles struct {
	j       *journal
	filesMu mutex // held while making and removing spare files; taken before mu

	next, end uint64 // numbers of the first spare file and of the one after the last
	owed      int64  // bytes of segments that have no file yet
	wanted    int64  // bytes that an oversized message waits for
	full      error  // the disk is full and the reserve is in use; nil: it is not
	unopened  error  // why a spare file that is needed cannot be opened; nil: there is none
	reported  error  // which of the two was reported to onFull last; guarded by filesMu as well
}

// why returns why durable messages are refused, or nil if they are not.
func (sp *spareFiles) why() error {
	if sp.unopened != nil {
		return sp.unopened
	}
	return sp.full
}

// permission is how much of the spare space an append may use.
type permission uint8

const (
	publishing permission = iota // none of the reserve
	moving                       // most of the reserve
	copying                      // half of the reserve, and never waits
)

func (sp *spareFiles) floor(may permission) int64 {
	switch may {
	case moving:
		return sp.j.opts.reserve / 4
	case copying:
		return sp.j.opts.reserve / 2
	}
	return sp.j.opts.reserve
}

// admitLocked returns once a message record may be appended that takes n bytes together with
// its entries. It releases mu while it waits. Publishers wait while the disk does not keep
// up; nothing else does. Nothing is admitted to a segment that no spare file is left for.
func (sp *spareFiles) admitLocked(n int, may permission) error {
	defer func() { sp.wanted = 0 }()
	for {
		if err := sp.j.usableLocked(); err != nil {
			return err
		}
		if may == publishing && sp.why() != nil {
			return ErrFull
		}
		if may != publishing || sp.j.unsaved <= sp.j.opts.backlog {
			left := sp.unclaimedLocked()
			if sp.j.hasRoomLocked(n) && left >= 0 && (may == moving || left >= sp.floor(may)) ||
				left-int64(sp.j.segmentSizeLocked(n)) >= sp.floor(may) {
				return nil
			}
			if sp.why() != nil || may == copying {
				return ErrFull
			}
			sp.wanted = max(sp.wanted, int64(sp.j.segmentSizeLocked(n)))
			sp.j.wake()
		}
		sp.j.space.Wait()
	}
}

// unclaimedLocked returns the bytes of spare files that no segment has claimed.
func (sp *spareFiles) unclaimedLocked() int64 {
	return int64(sp.end-sp.next)*int64(sp.j.memory.size) - sp.owed
}

func (sp *spareFiles) isFull() bool {
	sp.j.mu.Lock()
	defer sp.j.mu.Unlock()
	return sp.why() != nil
}

// attach gives a segment its file. If no spare file is ready it makes one, and waits for
// space on a full disk: what has been appended by then are settlements, and nothing can go
// on without them. Only the committer calls it.
func (c *committer) attach(s *segment) error {
	for s.file == nil {
		ok, err := c.j.spare.has(s.number) || c.j.spare.refill(1), error(nil)
		if ok {
			ok, err = c.j.spare.open(s)
		}
		if !ok && err == nil {
			err = c.awaitSpace(s.number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (sp *spareFiles) has(number uint64) bool {
	sp.j.mu.Lock()
	defer sp.j.mu.Unlock()
	return number < sp.end
}

// awaitSpace returns when it is worth trying again to attach a segment.
func (c *committer) awaitSpace(number uint64) error {
	c.j.mu.Lock()
	closed, err := c.j.closed, c.j.err
	c.j.mu.Unlock()
	if err != nil {
		return err
	}
	if closed {
		return fmt.Errorf("closed before segment %d could be written: %w", number, ErrFull)
	}
	retry := time.NewTimer(c.j.opts.retry)
	defer retry.Stop()
	select {
	case <-c.j.commit.bell:
	case <-retry.C:
	}
	resumed()
	return nil
}

// open opens the spare file with the segment's number and makes it long enough, at the
// cost of other spare files if necessary. false: there is no space at the moment.
func (sp *spareFiles) open(s *segment) (bool, error) {
	sp.filesMu.Lock()
	defer sp.filesMu.Unlock()
	err := sp.endUnended()
	if err != nil && !noSpace(err) {
		return false, err
	}
	var f file
	if err == nil {
		f, err = sp.j.fs.Open(fileName(s.number))
	}
	if err == nil {
		err = sp.stretchLocked(f, s)
	}
	if err != nil && !noSpace(err) {
		return false, fmt.Errorf("open segment %d: %w", s.number, err)
	}
	sp.j.mu.Lock()
	sp.unopened = err
	if err == nil {
		s.file = f
		sp.next = s.number + 1
		sp.owed -= int64(len(s.mem))
	}
	sp.j.space.Broadcast()
	sp.j.mu.Unlock()
	sp.reportFullLocked()
	return err == nil, nil
}

// endUnended ends the segment that the start had to leave open, now that the next one's file
// exists. Only the committer calls it.
func (sp *spareFiles) endUnended() error {
	s := sp.j.unended
	if s == nil {
		return nil
	}
	f, err := sp.j.fs.Open(fileName(s.number))
	if err != nil {
		return fmt.Errorf("open segment %d: %w", s.number, err)
	}
	defer f.Close()
	if err := writeEnd(f, sp.j.id, s.number, s.used); err != nil {
		return fmt.Errorf("end segment %d: %w", s.number, err)
	}
	sp.j.unended = nil
	return nil
}

// stretchLocked makes the file long enough for the segment, or closes it. The space for an
// oversized segment has been kept in the form of other spare files. It needs filesMu.
func (sp *spareFiles) stretchLocked(f file, s *segment) error {
	for n := len(s.mem)/sp.j.memory.size - 1; n > 0 && sp.removeLastLocked(s.number); n-- {
	}
	err := f.Allocate(int64(len(s.mem)))
	for noSpace(err) && sp.removeLastLocked(s.number) {
		err = f.Allocate(int64(len(s.mem)))
	}
	if err != nil {
		f.Close()
	}
	return err
}

// removeLastLocked removes the last spare file, unless it has the number keep. It
// needs filesMu.
func (sp *spareFiles) removeLastLocked(keep uint64) bool {
	sp.j.mu.Lock()
	last := sp.end - 1
	if last <= keep {
		sp.j.mu.Unlock()
		return false
	}
	sp.end = last
	sp.j.mu.Unlock()
	return sp.j.fs.Remove(fileName(last)) == nil
}

// refill makes spare files until there are enough, or atMost of them. It returns false if
// the disk does not have the space.
func (sp *spareFiles) refill(atMost int) bool {
	sp.filesMu.Lock()
	defer sp.filesMu.Unlock()
	sp.j.mu.Lock()
	end, missing := sp.end, sp.missingLocked()
	sp.j.mu.Unlock()
	made := end
	var err error
	for ; missing > 0 && atMost > 0 && err == nil; atMost-- {
		if err = makeSpare(sp.j.fs, made, int64(sp.j.memory.size)); err == nil {
			made++
			missing -= int64(sp.j.memory.size)
		}
	}
	if made > end {
		if err := sp.j.fs.SyncDir(); err != nil {
			_ = sp.j.fail(fmt.Errorf("sync the data directory: %w", err))
			return false
		}
	}
	if err != nil && !noSpace(err) {
		_ = sp.j.fail(fmt.Errorf("allocate segment %d: %w", made, err))
		return false
	}
	sp.refilledLocked(made, err)
	return err == nil
}

// missingLocked returns how many bytes of spare files are missing.
func (sp *spareFiles) missingLocked() int64 {
	return sp.j.opts.reserve + sp.j.opts.ahead + sp.wanted - sp.unclaimedLocked()
}

// makeSpare makes a spare file. It gets its name last: on a full disk the name may belong to
// an empty file, which must stay (repairSpares).
func makeSpare(fs fileSystem, number uint64, size int64) error {
	f, err := fs.Create(spareTemp, size)
	if err != nil {
		return err
	}
	if err = f.Close(); err == nil {
		err = fs.Rename(spareTemp, fileName(number))
	}
	if err != nil {
		_ = fs.Remove(spareTemp) // the next start tries again
	}
	return err
}

// refilledLocked publishes new spare files, and whether the disk is full. A full disk counts as
// full until all spare files exist again, so that the state does not flap. It needs filesMu.
func (sp *spareFiles) refilledLocked(end uint64, err error) {
	sp.j.mu.Lock()
	if end > sp.end {
		sp.j.wakeCommitterLocked()
	}
	sp.end = end
	if err == nil && sp.missingLocked() <= 0 {
		sp.full = nil
	} else if err != nil && sp.missingLocked() > sp.j.opts.ahead-int64(sp.j.memory.size) {
		sp.full = err
	}
	sp.j.space.Broadcast()
	sp.j.mu.Unlock()
	sp.reportFullLocked()
}

// reportFullLocked logs and reports a change: durable messages are refused, or are accepted
// again, or are refused for another reason. It needs filesMu.
func (sp *spareFiles) reportFullLocked() {
	sp.j.mu.Lock()
	why, was := sp.why(), sp.reported
	sp.reported = why
	sp.j.mu.Unlock()
	if (why == nil) == (was == nil) && NoFiles(why) == NoFiles(was) {
		return
	}
	switch {
	case why == nil:
		sp.j.log.Info("disk has space again")
	case NoFiles(why):
		sp.j.log.Error("no file descriptors left for the store, refusing persistent messages; close connections or raise the limit on open files (ulimit -n)", zap.Error(why))
	default:
		sp.j.log.Error("disk is full, refusing persistent messages; free space or consume messages", zap.Error(why))
	}
	sp.j.opts.onFull(why)
}

// NoFiles reports whether err means that no file descriptors were left.
func NoFiles(err error) bool { return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) }

// noSpace reports whether err may pass by itself: the disk is full, or no file descriptors
// are left.
func noSpace(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
