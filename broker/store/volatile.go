package store

// volatileLog holds the messages that no restart survives.
type volatileLog struct {
	appender
	overflow int64 // bytes resident at which publishers wait for the keeper to spill; 0: there is no disk
	cramped  bool  // the disk takes nothing now
}

func newVolatileLog(memory *mappings, wake func()) *volatileLog {
	v := &volatileLog{appender: appender{memory: memory, next: 1, wake: wake}}
	v.space.L = &v.mu
	v.dead = func(s *segment) *segment {
		v.forget(s)
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
	defer v.mu.Unlock()
	if err := v.makeRoom(align(n), may); err != nil {
		return 0, err
	}
	s, at := v.take(align(n), max(refs, 1))
	putMessage(s.mem[at:], n, m, slots)
	return makePos(true, s.number, at), nil
}

// makeRoom has n bytes fit into the active segment. Publishers wait while the disk does
// not keep up; nothing else does, nor anybody with an open strip. The caller holds mu.
func (v *volatileLog) makeRoom(n int, may permission) error {
	for may == publishing && !v.fits(n) && v.overflows() {
		v.space.Wait()
	}
	if v.fits(n) {
		return nil
	}
	return v.roll(n)
}

// overflows reports whether more lies in memory than should, and the disk is taking it.
// The caller holds mu.
func (v *volatileLog) overflows() bool {
	return v.overflow > 0 && v.resident > v.overflow && !v.cramped && !v.closed
}

// nextToSpill returns the next segment to move to the disk, or nil. Where more than limit
// bytes are left then, all of them have open strips: nobody is to wait for those. The
// end of the next one wakes the keeper.
func (v *volatileLog) nextToSpill(limit int64) *segment {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.oldestResident(limit)
	if s == nil {
		v.cramped = v.resident > limit
		v.space.Broadcast()
	}
	return s
}

// setCramped notes whether the disk takes what lies in memory. It returns whether that is new.
func (v *volatileLog) setCramped(to bool) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	was := v.cramped
	v.cramped = to
	v.space.Broadcast()
	return to != was
}

// shut ends appending.
func (v *volatileLog) shut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed = true
	v.space.Broadcast()
}

// roll starts a segment of at least n bytes. The caller holds mu.
func (v *volatileLog) roll(n int) error {
	if v.closed {
		return ErrClosed
	}
	mem, err := v.memory.get(max(v.memory.size, pageAlign(n)))
	if err != nil {
		return err
	}
	v.seal()
	v.start(mem)
	return nil
}

// enqueued notes in a message's first free slot who holds it. When none is free
// compaction cannot move the message, which costs only memory.
func (v *volatileLog) enqueued(e *Enqueue) {
	claimSlot(v.table.get(e.Pos.segment()).mem[e.Pos.offset():], e.Queue, e.Seq)
}
