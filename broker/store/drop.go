package store

import (
	"encoding/binary"
	"slices"
	"time"

	"go.uber.org/zap"
)

// Dropping a segment forgets all its records. That must not bring a message back or lose
// one, so a segment without referenced messages may have to wait for others:
//
//   - A settlement is needed while the settled message exists, since the record that put it
//     into its queue may exist as well.
//   - An entry is needed while its message exists and may be referred to. So are its
//     amendments.
//   - A copy that compaction made is needed while its original exists: a later settlement
//     names the copy, and must be kept because of the original.
//
// The first two can be carried, that is, appended again. They are carried if that frees at
// least half of the segment; otherwise the segment waits until the segments they refer to
// are dropped. A message comes before all records that refer to it, and a carried
// settlement or amendment states its original position, so the order of the other records
// never matters.
//
// A segment is dropped by a record. The file is removed only when that record is on disk,
// together with everything that was carried before it.

// dropSegments drops what can be dropped. Only the maintainer calls it.
func (m *maintainer) dropSegments() {
	j := m.journal
	var needless, waiting []*segment
	for _, s := range m.takeDeadSegments() {
		if s.emptied || m.existingOf(s.enters)+m.existingOf(s.alters)+m.existingOf(s.origins) == 0 || m.carry(s) {
			j.mu.Lock()
			s.dropped = true
			j.existing.remove(uint32(s.number))
			j.mu.Unlock()
			needless = append(needless, s)
		} else {
			waiting = append(waiting, s)
		}
	}
	j.mu.Lock()
	j.deadSegments = append(j.deadSegments, waiting...)
	m.recordDroppedLocked(needless)
	j.mu.Unlock()
	if len(needless) == 0 || m.syncDropped(needless) != nil {
		return
	}
	for _, s := range needless {
		m.remove(s)
	}
}

// syncDropped returns once the record of what was dropped is on disk. While that waits for space, it makes some.
func (m *maintainer) syncDropped(needless []*segment) error {
	j := m.journal
	done := make(chan error, 1)
	j.mu.Lock()
	err := j.usableLocked()
	if err == nil {
		j.forceLocked(func(err error) { done <- err })
	}
	j.mu.Unlock()
	if err != nil {
		return err
	}
	retry := time.NewTicker(j.opts.retry)
	defer retry.Stop()
	for {
		select {
		case err := <-done:
			resumed()
			return err
		case <-retry.C:
			resumed()
			m.emptyDead(needless)
		}
	}
}

// emptyDead makes space when the reserve is used up and not even a settlement can be written.
// It empties the files of dead segments: it ends them after their lists of segments, and cuts
// them off there. What settled their messages is not on disk yet, and after a crash it does
// not matter any more: an emptied segment has no messages. The file itself must stay until
// the record that drops it is on disk.
//
// That is done only while nothing but settlements, amendments and moves wait to be written. Whatever
// enters a queue must not be lost if what was handed in after it survives. So a segment stays as it is
// while it says something about another one that still has its messages, and while a move of one of
// its own waits: a lost move leaves the message where it was.
func (m *maintainer) emptyDead(needless []*segment) {
	j := m.journal
	j.mu.Lock()
	why, synced := j.spare.full, j.commit.synced
	stuck := why != nil && !NoFiles(why) && j.spare.unclaimedLocked() < 0 && j.entered <= synced
	j.mu.Unlock()
	if !stuck {
		return
	}
	dead := m.takeDeadSegments()
	for _, s := range slices.Concat(needless, dead) {
		if s.emptied || s.moved > synced || !m.refersToEmptied(s) {
			continue
		}
		if err := m.empty(s); err != nil {
			j.log.Warn("cannot free the space of a segment that is no longer needed", zap.Uint64("segment", s.number), zap.Error(err))
			break
		}
	}
	j.mu.Lock()
	j.deadSegments = append(j.deadSegments, dead...)
	j.mu.Unlock()
}

// refersToEmptied reports whether s refers to no other segment that still has its messages.
func (m *maintainer) refersToEmptied(s *segment) bool {
	j := m.journal
	for _, number := range slices.Concat(s.enters, s.alters, s.origins) {
		if other := j.table.get(uint64(number)); other != nil && !other.emptied {
			return false
		}
	}
	return true
}

// empty empties the file of a dead segment, whose memory nobody reads any more.
func (m *maintainer) empty(s *segment) error {
	j := m.journal
	f := s.file
	if f == nil {
		var err error
		if f, err = j.fs.Open(fileName(s.number)); err != nil {
			return err
		}
	} else {
		s.file = nil
		j.setPaged(s) // its memory is of no use
	}
	defer f.Close()
	at := fileHeader
	for k := kindMark; k != kindSegments; { // the list comes first, behind a mark
		var n int
		k, n = header(s.mem[at:])
		at += align(n)
	}
	s.emptied = true
	if err := writeEnd(f, j.id, s.number, at); err != nil {
		return err
	}
	return f.Truncate(int64(at + endBytes))
}

// takeDeadSegments takes the dead segments whose files are complete, in ascending order.
func (m *maintainer) takeDeadSegments() []*segment {
	j := m.journal
	j.mu.Lock()
	defer j.mu.Unlock()
	var dead, rest []*segment
	for _, s := range j.deadSegments {
		if s.complete {
			dead = append(dead, s)
		} else {
			rest = append(rest, s)
		}
	}
	j.deadSegments = rest
	slices.SortFunc(dead, func(a, b *segment) int { return int(a.number) - int(b.number) })
	return dead
}

// exists reports whether a segment exists and is going to stay. Only the maintainer calls
// it, and only the maintainer drops segments.
func (m *maintainer) exists(number uint32) bool {
	s := m.journal.table.get(uint64(number))
	return s != nil && !s.dropped
}

func (m *maintainer) existingOf(s numberSet) (n int) {
	for _, number := range s {
		if m.exists(number) {
			n++
		}
	}
	return n
}

// carry appends again what s records about existing segments, if that frees at least half
// of s. Once refused, it tries again only when half of those segments are gone.
func (m *maintainer) carry(s *segment) bool {
	j := m.journal
	others := m.existingOf(s.enters) + m.existingOf(s.alters)
	if m.existingOf(s.origins) > 0 || s.examined > 0 && others > s.examined/2 {
		return false
	}
	var needed carried
	s.eachFact(func(f *facts) { needed.collect(m, s, f) })
	if needed.size > s.used/2 {
		s.examined = others
		return false
	}
	// The last part of the reserve is left to what cannot wait. What fits into the active segment takes
	// nothing of it: otherwise every start on a full disk would use up one file.
	j.mu.Lock()
	left := j.spare.unclaimedLocked()
	may := left >= 0 && j.hasRoomLocked(needed.size) || left-int64(needed.size) >= j.spare.floor(copying)
	j.mu.Unlock()
	if !may {
		return false
	}
	inSteps(j, needed.entries, func(j *journal, some []Enqueue) {
		entered := j.entered // they enter no queue by this: emptyDead need not wait for them, which may wait for what it empties
		j.enqueuedLocked(some)
		j.entered = entered
	})
	inSteps(j, needed.others, func(j *journal, some []func(*journal)) {
		for _, putLocked := range some {
			putLocked(j)
		}
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err == nil
}

// carried holds the records of a segment that are still needed.
type carried struct {
	entries []Enqueue
	others  []func(*journal) // each appends a settlement or an amendment, which holds as of its original position
	size    int
}

func (c *carried) collect(m *maintainer, s *segment, f *facts) {
	f.eachEntry(func(e Enqueue) {
		if n := e.Pos.segment(); n != s.number && m.exists(uint32(n)) {
			c.entries = append(c.entries, e)
			c.size += e.size()
		}
	})
	other := func(segment uint32, size int, putLocked func(*journal)) {
		if uint64(segment) != s.number && m.exists(segment) {
			c.others = append(c.others, putLocked)
			c.size += align(recordHeader + 8 + size)
		}
	}
	asOf := f.asOf
	f.eachRun(func(r run) {
		other(r.segment, runBytes, func(j *journal) { j.putRunsLocked([]run{r}, asOf) })
	})
	f.eachAmend(func(a amendment) {
		other(a.segment, a.size(), func(j *journal) { j.putAmendsLocked([]amendment{a}, asOf) })
	})
}

// recordDroppedLocked records that the segments are no longer needed.
func (m *maintainer) recordDroppedLocked(needless []*segment) {
	if len(needless) == 0 {
		return
	}
	b, _ := m.journal.reserveLocked(kindDropped, 4*len(needless), 0)
	if b == nil {
		return
	}
	for i, s := range needless {
		binary.LittleEndian.PutUint32(b[recordHeader+4*i:], uint32(s.number))
	}
}

// remove removes a dropped segment from disk and from memory. If the file cannot be
// removed, the next Open removes it.
func (m *maintainer) remove(s *segment) {
	j := m.journal
	if s.file != nil {
		s.file.Close()
	}
	if err := j.fs.Remove(fileName(s.number)); err != nil {
		j.log.Warn("cannot remove a segment that is no longer needed", zap.Uint64("segment", s.number), zap.Error(err))
	}
	j.mu.Lock()
	j.forgetLocked(s)
	j.mu.Unlock()
	j.memory.dispose(s)
}

// eachFact calls fn for the records of a complete segment that say where messages are.
func (s *segment) eachFact(fn func(*facts)) {
	for at := fileHeader; at < s.used; {
		k, n := header(s.mem[at:])
		if f, states := factsOf(k, s.mem[at+recordHeader:at+n]); states {
			fn(&f)
		}
		at += align(n)
	}
}
