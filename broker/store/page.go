package store

import "go.uber.org/zap"

// Young segments stay in anonymous memory, where most die and are used again.
// When there are too many, the oldest get their file's pages in place of that
// memory, at the same address and with the same bytes: nobody notices, and the
// system may drop them from memory and read them again.

// oldestResident returns the oldest sealed segment that is not paged, if the log
// has more of them than it should. Only the keeper calls it. He holds mu.
func (a *appender) oldestResident(limit int64) *segment {
	if a.resident <= limit {
		return nil
	}
	for at := a.paging; at < a.next; at++ {
		s := a.table.get(at)
		switch {
		case s == a.active:
			return nil
		case s != nil && s.hasStrip(): // its turn comes
		case s != nil && !s.paged:
			return s
		case at == a.paging:
			a.paging++
		}
	}
	return nil
}

// setPaged notes that the segment's memory is a file's.
func (a *appender) setPaged(s *segment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s.paged = true
	a.eased(s)
}

// pageOut moves old segments of the journal from memory to their files. Only the
// keeper drops them, so they stay meanwhile.
func (j *journal) pageOut() {
	for {
		s := j.nextToPage()
		if s == nil {
			return
		}
		if err := s.file.MapOver(s.mem, 0, false); err != nil {
			j.log.Warn("segment stays in memory", zap.Uint64("segment", s.number), zap.Error(err))
			return
		}
		s.file.Close()
		s.file = nil
		j.setPaged(s)
	}
}

// nextToPage returns the next segment to move, if it has all it will have.
func (j *journal) nextToPage() *segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.oldestResident(j.opts.resident); s != nil && s.complete {
		return s
	}
	return nil
}

// spill moves old segments of the volatile log from memory to the disk. While it
// cannot, publishers do not wait for it.
func (k *keeper) spill() {
	v := k.volatile
	for {
		k.tidy()
		s := v.nextToSpill(k.opts.resident)
		if s == nil {
			return
		}
		if !s.tryRetain() {
			return // it has died: who released it wakes the keeper
		}
		err := k.spilled.put(s)
		if err == nil {
			v.setPaged(s)
		}
		v.release(s, 1)
		if v.setCramped(err != nil) && err != nil {
			k.log.Warn("transient messages stay in memory", zap.Error(err))
		}
		if err != nil {
			return
		}
	}
}
