package store

import (
	"fmt"

	"go.uber.org/zap"
)

// Young segments stay in anonymous memory, where most of them die and are reused. When
// there are too many, the oldest are paged: their file's pages replace that memory, at the
// same address and with the same bytes. Readers notice nothing, and the system may drop the
// pages from memory and read them again.

// oldestResidentLocked returns the oldest sealed segment that is not paged, if the log has
// more of them than it should. Only the maintainer calls it.
func (a *appender) oldestResidentLocked(limit int64) *segment {
	if a.resident <= limit {
		return nil
	}
	for at := a.paging; at < a.next; at++ {
		s := a.table.get(at)
		switch {
		case s == a.active:
			return nil
		case s != nil && s.hasStrip(): // later
		case s != nil && !s.paged:
			return s
		case at == a.paging:
			a.paging++
		}
	}
	return nil
}

// setPaged records that the segment's memory is a file's.
func (a *appender) setPaged(s *segment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.paged = true
	a.noteFreedLocked(s)
}

// pageOut moves old segments of the journal from memory to their files. Only the maintainer
// drops segments, so they stay during the call.
func (m *maintainer) pageOut() {
	j := m.journal
	for {
		j.mu.Lock()
		s := j.oldestResidentLocked(j.opts.resident)
		ready := s != nil && s.complete
		j.mu.Unlock()
		if !ready {
			return
		}
		if err := s.file.MapOver(s.mem, false); err != nil {
			j.log.Warn("segment stays in memory", zap.Uint64("segment", s.number), zap.Error(err))
			return
		}
		s.file.Close()
		s.file = nil
		j.setPaged(s)
	}
}

// spill moves old segments of the volatile log from memory to disk. While that fails,
// publishers do not wait for it.
func (m *maintainer) spill() {
	v := m.volatile
	for {
		m.memory.unmapUnused()
		s := v.nextToSpill(m.opts.resident)
		if s == nil {
			return
		}
		if !s.tryRetain() {
			return // it has died: releasing it wakes the maintainer
		}
		err := spillTo(m.journal.fs, s)
		if err == nil {
			v.setPaged(s)
		}
		v.release(s, 1)
		if v.setDiskStuck(err != nil) && err != nil {
			m.log.Warn("transient messages stay in memory", zap.Error(err))
		}
		if err != nil {
			return
		}
	}
}

// spillTo writes the segment to a file without a name, and replaces its memory by the file's pages. The
// file disappears with them, and takes no descriptor until then. Files that several segments share,
// whose space is used again, were no faster.
func spillTo(fs fileSystem, s *segment) error {
	f, err := fs.Create(spillTemp, int64(len(s.mem)))
	if err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	defer f.Close()
	if err = fs.Remove(spillTemp); err == nil {
		if _, err = f.WriteAt(s.mem[:s.used], 0); err == nil {
			err = f.MapOver(s.mem, true)
		}
	}
	if err != nil {
		return fmt.Errorf("spill: %w", err)
	}
	return nil
}
