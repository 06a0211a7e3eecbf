package store

// volatileLog holds the messages that no restart survives.
type volatileLog struct {
	appender
	// buried are dead segments whose memory is a file's pages, for the keeper to
	// unmap: a file without a name goes with its last mapping, and that waits for
	// what the system is writing of it. Guarded by mu.
	buried []*segment
}

func newVolatileLog(memory *mappings, wake func()) *volatileLog {
	v := &volatileLog{appender: appender{memory: memory, next: 1, wake: wake}}
	v.dead = func(s *segment) *segment {
		v.forget(s)
		if s.paged {
			v.buried = append(v.buried, s)
			return nil
		}
		return s
	}
	return v
}

// unmap gives back the memory of the segments that are buried.
func (v *volatileLog) unmap() {
	v.mu.Lock()
	buried := v.buried
	v.buried = nil
	v.mu.Unlock()
	for _, s := range buried {
		v.memory.dispose(s)
	}
}

func (v *volatileLog) close() {
	v.unmap()
	v.appender.close()
}

func (v *volatileLog) put(m *Message, refs int) (Pos, error) {
	slots := min(refs, maxSlots)
	n, err := messageBytes(m, slots)
	if err != nil {
		return 0, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.fits(align(n)) {
		if err := v.roll(align(n)); err != nil {
			return 0, err
		}
	}
	s, at := v.take(align(n), max(refs, 1))
	putMessage(s.mem[at:], n, m, slots)
	return makePos(true, s.number, at), nil
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
