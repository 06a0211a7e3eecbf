package store

import "time"

// volatileLog holds the messages that do not survive a restart.
type volatileLog struct {
	appender
	overflow  int64 // resident bytes at which publishers wait for the maintainer to spill; 0: there is no disk
	diskStuck bool  // the disk takes nothing at the moment
}

func newVolatileLog(memory *mappings, wake func()) *volatileLog {
	v := &volatileLog{appender: appender{memory: memory, next: 1, wake: wake}}
	v.space.L = &v.mu
	v.dead = func(s *segment) *segment {
		v.forgetLocked(s)
		return s
	}
	return v
}

// put appends a message.
func (v *volatileLog) put(m *Message, refs int, may permission) (Pos, error) {
	slots := min(refs, maxSlots)
	n, err := messageBytes(m, slots)
	if err != nil {
		return 0, err
	}
	v.mu.Lock()
	if err := v.makeRoomLocked(align(n), may); err != nil {
		v.mu.Unlock()
		return 0, err
	}
	s, at := v.takeLocked(align(n), max(refs, 1))
	large := n > largeRecord
	if large {
		s.refs.Add(stripRefs) // until it is copied
	} else {
		putMessage(s.mem[at:], n, m, slots)
	}
	if len(s.mem) > v.memory.size {
		s.alone = true
		v.sealLocked()
	}
	v.mu.Unlock()
	if large {
		putMessage(s.mem[at:], n, m, slots)
		v.release(s, stripRefs)
		v.wake() // the maintainer may have skipped the segment
	}
	return makePos(true, s.number, at), nil
}

// makeRoomLocked makes n bytes fit into the active segment. Publishers wait while more is in memory
// than should be, and the disk is working on it. Nothing else waits, and no caller with an open strip does.
func (v *volatileLog) makeRoomLocked(n int, may permission) error {
	for may == publishing && !v.fitsLocked(n) && v.overflow > 0 && v.resident > v.overflow && !v.diskStuck && !v.closed {
		v.space.Wait()
	}
	if v.fitsLocked(n) {
		return nil
	}
	return v.rollLocked(n)
}

// nextToSpill returns the next segment to move to disk, or nil. Even if more than limit
// bytes stay in memory then, they all have open strips, and nobody must wait for those. The
// end of the next strip wakes the maintainer.
func (v *volatileLog) nextToSpill(limit int64) *segment {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.oldestResidentLocked(limit)
	if s == nil {
		v.diskStuck = v.resident > limit
		v.space.Broadcast()
	}
	return s
}

// setDiskStuck records whether the disk accepts what is in memory. It reports whether that
// has changed.
func (v *volatileLog) setDiskStuck(to bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.diskStuck
	v.diskStuck = to
	v.space.Broadcast()
	return to != was
}

// rollLocked starts a segment of at least n bytes.
func (v *volatileLog) rollLocked(n int) error {
	defer v.noteHeld(time.Now())
	if v.closed {
		return errClosed
	}
	mem, err := v.memory.get(max(v.memory.size, pageAlign(n)))
	if err != nil {
		return err
	}
	v.sealLocked()
	v.startLocked(mem)
	return nil
}
