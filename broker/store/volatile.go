package store

// volatileLog holds the messages that no restart survives.
type volatileLog struct {
	appender
}

func newVolatileLog(memory *mappings, wake func()) *volatileLog {
	v := &volatileLog{appender{memory: memory, next: 1, wake: wake}}
	v.dead = func(s *segment) *segment {
		v.forget(s)
		return s
	}
	return v
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
