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
// settlements and moves. Guarded by the journal's mu.
type spareFiles struct {
	next, end uint64 // numbers of the first spare file and of the one after the last
	owed      int64  // bytes of segments that have no file yet
	wanted    int64  // bytes that an oversized message waits for
	full      error  // the disk is full and the reserve is in use; nil: it is not
	unopened  error  // why a spare file that is needed cannot be opened; nil: there is none
	reported  error  // which of the two was reported to onFull last; guarded by filesMu as well
}

// why returns why durable messages are refused, or nil if they are not.
func (s *spareFiles) why() error {
	if s.unopened != nil {
		return s.unopened
	}
	return s.full
}

// permission is how much of the spare space an append may use.
type permission uint8

const (
	publishing permission = iota // none of the reserve
	moving                       // most of the reserve
	copying                      // half of the reserve, and never waits
)

func (j *journal) floor(may permission) int64 {
	switch may {
	case moving:
		return j.opts.reserve / 4
	case copying:
		return j.opts.reserve / 2
	}
	return j.opts.reserve
}

// admitLocked returns once a message record may be appended that takes n bytes together with
// its entries. It releases mu while it waits. Publishers wait while the disk does not keep
// up; nothing else does. Nothing is admitted to a segment that no spare file is left for.
func (j *journal) admitLocked(n int, may permission) error {
	defer func() { j.spare.wanted = 0 }()
	for {
		if err := j.usableLocked(); err != nil {
			return err
		}
		if may == publishing && j.spare.why() != nil {
			return ErrFull
		}
		if may != publishing || j.unsaved <= j.opts.backlog {
			left := j.unclaimedSpareLocked()
			if j.hasRoomLocked(n) && left >= 0 && (may == moving || left >= j.floor(may)) ||
				left-int64(j.segmentSizeLocked(n)) >= j.floor(may) {
				return nil
			}
			if j.spare.why() != nil || may == copying {
				return ErrFull
			}
			j.spare.wanted = max(j.spare.wanted, int64(j.segmentSizeLocked(n)))
			j.wake()
		}
		j.space.Wait()
	}
}

// unclaimedSpareLocked returns the bytes of spare files that no segment has claimed.
func (j *journal) unclaimedSpareLocked() int64 {
	return int64(j.spare.end-j.spare.next)*int64(j.memory.size) - j.spare.owed
}

func (j *journal) isFull() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.spare.why() != nil
}

// attach gives a segment its file. If no spare file is ready it makes one, and waits for
// space on a full disk: what has been appended by then are settlements, and nothing can go
// on without them. Only the committer calls it.
func (j *journal) attach(s *segment) error {
	for s.file == nil {
		ok, err := j.hasSpare(s.number) || j.refill(1), error(nil)
		if ok {
			ok, err = j.openSpare(s)
		}
		if !ok && err == nil {
			err = j.awaitSpace(s.number)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *journal) hasSpare(number uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return number < j.spare.end
}

// awaitSpace returns when it is worth trying again to attach a segment.
func (j *journal) awaitSpace(number uint64) error {
	j.mu.Lock()
	closed, err := j.closed, j.err
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if closed {
		return fmt.Errorf("closed before segment %d could be written: %w", number, ErrFull)
	}
	retry := time.NewTimer(j.opts.retry)
	defer retry.Stop()
	select {
	case <-j.commit.bell:
	case <-retry.C:
	}
	resumed()
	return nil
}

// openSpare opens the spare file with the segment's number and makes it long enough, at the
// cost of other spare files if necessary. false: there is no space at the moment.
func (j *journal) openSpare(s *segment) (bool, error) {
	j.filesMu.Lock()
	defer j.filesMu.Unlock()
	err := j.endUnended()
	if err != nil && !noSpace(err) {
		return false, err
	}
	var f file
	if err == nil {
		f, err = j.fs.Open(fileName(s.number))
	}
	if err == nil {
		err = j.stretchLocked(f, s)
	}
	if err != nil && !noSpace(err) {
		return false, fmt.Errorf("open segment %d: %w", s.number, err)
	}
	j.mu.Lock()
	j.spare.unopened = err
	if err == nil {
		s.file = f
		j.spare.next = s.number + 1
		j.spare.owed -= int64(len(s.mem))
	}
	j.space.Broadcast()
	j.mu.Unlock()
	j.reportFullLocked()
	return err == nil, nil
}

// endUnended ends the segment that the start had to leave open, now that the next one's file
// exists. Only the committer calls it.
func (j *journal) endUnended() error {
	s := j.unended
	if s == nil {
		return nil
	}
	f, err := j.fs.Open(fileName(s.number))
	if err != nil {
		return fmt.Errorf("open segment %d: %w", s.number, err)
	}
	defer f.Close()
	if err := writeEnd(f, j.id, s.number, s.used); err != nil {
		return fmt.Errorf("end segment %d: %w", s.number, err)
	}
	j.unended = nil
	return nil
}

// stretchLocked makes the file long enough for the segment, or closes it. The space for an
// oversized segment has been kept in the form of other spare files. It needs filesMu.
func (j *journal) stretchLocked(f file, s *segment) error {
	for n := len(s.mem)/j.memory.size - 1; n > 0 && j.removeLastSpareLocked(s.number); n-- {
	}
	err := f.Allocate(int64(len(s.mem)))
	for noSpace(err) && j.removeLastSpareLocked(s.number) {
		err = f.Allocate(int64(len(s.mem)))
	}
	if err != nil {
		f.Close()
	}
	return err
}

// removeLastSpareLocked removes the last spare file, unless it has the number keep. It
// needs filesMu.
func (j *journal) removeLastSpareLocked(keep uint64) bool {
	j.mu.Lock()
	last := j.spare.end - 1
	if last <= keep {
		j.mu.Unlock()
		return false
	}
	j.spare.end = last
	j.mu.Unlock()
	return j.fs.Remove(fileName(last)) == nil
}

// refill makes spare files until there are enough, or atMost of them. It returns false if
// the disk does not have the space.
func (j *journal) refill(atMost int) bool {
	j.filesMu.Lock()
	defer j.filesMu.Unlock()
	j.mu.Lock()
	end, missing := j.spare.end, j.missingSpareLocked()
	j.mu.Unlock()
	made := end
	var err error
	for ; missing > 0 && atMost > 0 && err == nil; atMost-- {
		if err = makeSpare(j.fs, made, int64(j.memory.size)); err == nil {
			made++
			missing -= int64(j.memory.size)
		}
	}
	if made > end {
		if err := j.fs.SyncDir(); err != nil {
			_ = j.fail(fmt.Errorf("sync the data directory: %w", err))
			return false
		}
	}
	if err != nil && !noSpace(err) {
		_ = j.fail(fmt.Errorf("allocate segment %d: %w", made, err))
		return false
	}
	j.refilledLocked(made, err)
	return err == nil
}

// missingSpareLocked returns how many bytes of spare files are missing.
func (j *journal) missingSpareLocked() int64 {
	return j.opts.reserve + j.opts.ahead + j.spare.wanted - j.unclaimedSpareLocked()
}

// makeSpare makes a spare file. It gets its name last: on a full disk the name may belong to
// an empty file, which must stay (repairSpares).
func makeSpare(fs fileSystem, number uint64, size int64) error {
	f, err := fs.Create(spareTemp, size)
	if err != nil {
		return err
	}
	return nameFile(fs, f, spareTemp, fileName(number))
}

// nameFile closes a new file and gives it its name, or removes it.
func nameFile(fs fileSystem, f file, temp, name string) error {
	err := f.Close()
	if err == nil {
		err = fs.Rename(temp, name)
	}
	if err != nil {
		_ = fs.Remove(temp) // the next start tries again
	}
	return err
}

// refilledLocked publishes new spare files, and whether the disk is full. A full disk counts as
// full until all spare files exist again, so that the state does not flap. It needs filesMu.
func (j *journal) refilledLocked(end uint64, err error) {
	j.mu.Lock()
	if end > j.spare.end {
		j.wakeCommitterLocked()
	}
	j.spare.end = end
	if err == nil && j.missingSpareLocked() <= 0 {
		j.spare.full = nil
	} else if err != nil && j.missingSpareLocked() > j.opts.ahead-int64(j.memory.size) {
		j.spare.full = err
	}
	j.space.Broadcast()
	j.mu.Unlock()
	j.reportFullLocked()
}

// reportFullLocked logs and reports a change: durable messages are refused, or are accepted
// again, or are refused for another reason. It needs filesMu.
func (j *journal) reportFullLocked() {
	j.mu.Lock()
	why, was := j.spare.why(), j.spare.reported
	j.spare.reported = why
	j.mu.Unlock()
	if (why == nil) == (was == nil) && NoFiles(why) == NoFiles(was) {
		return
	}
	switch {
	case why == nil:
		j.log.Info("disk has space again")
	case NoFiles(why):
		j.log.Error("no file descriptors left for the store, refusing persistent messages; close connections or raise the limit on open files (ulimit -n)", zap.Error(why))
	default:
		j.log.Error("disk is full, refusing persistent messages; free space or consume messages", zap.Error(why))
	}
	j.opts.onFull(why)
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
