package store

// Putter puts the messages of one publisher, one batch at a time. From the second message
// of a batch on, it writes volatile messages into strips of the active segment that nobody
// else writes to, so that a batch takes the log's lock a few times and not once for each
// message. With several publishers that lock took a sixth of the processor time of a
// transient message.
//
// Compaction leaves a segment with an open strip alone, and it stays in memory. Therefore a
// Putter belongs to one goroutine. Put closes the strip before it waits for anything, and
// the goroutine must call End before it waits for anything else. After End anybody may use
// what was put. A batch must have ended before the store is closed.
type Putter struct {
	store *Store
	size  int // of the next strip; 0: no batch has begun

	// The open strip.
	seg     *segment // nil: none
	at, end int      // the unused part of the strip
	refs    int64    // references given in the strip
}

const (
	minStrip = 2 << 10
	maxStrip = 16 << 10 // larger messages go into no strip

	// stripRefs is what an open strip adds to its segment's references: more than there can
	// be real references.
	stripRefs = 1 << 40

	// unused is the kind of a record that fills the unused rest of a strip.
	unused kind = 0
)

// NewPutter returns a Putter without a batch.
func (s *Store) NewPutter() *Putter { return &Putter{store: s} }

// Put is Store.Put. The batch must end soon after, with End.
func (p *Putter) Put(m *Message, durable bool, refs int) (Pos, error) {
	if durable && p.store.journal != nil {
		p.End()
		return p.store.journal.put(m, refs, 0, publishing)
	}
	slots := min(refs, maxSlots)
	n, err := messageBytes(m, slots)
	if err != nil {
		return 0, err
	}
	if n > maxStrip {
		p.End()
		return p.store.volatile.put(m, refs, publishing)
	}
	if p.size == 0 {
		p.size = minStrip
		return p.store.volatile.put(m, refs, publishing)
	}
	if err := p.ensure(align(n)); err != nil {
		return 0, err
	}
	at := p.at
	putMessage(p.seg.mem[at:], n, m, slots)
	p.at += align(n)
	p.refs += int64(max(refs, 1))
	return makePos(true, p.seg.number, at), nil
}

// End ends the batch.
func (p *Putter) End() {
	p.size = 0
	if p.seg != nil {
		p.closeStrip()
	}
}

// ensure makes room for n bytes in the open strip, or opens a new one.
func (p *Putter) ensure(n int) error {
	if p.seg != nil {
		if p.at+n <= p.end || p.extend(n) {
			return nil
		}
		p.closeStrip()
	}
	v := p.store.volatile
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.makeRoomLocked(n, publishing); err != nil {
		return err
	}
	size := p.stripSizeLocked(n, v)
	s, at := v.takeLocked(size, 0)
	s.refs.Add(stripRefs)
	p.seg, p.at, p.end = s, at, at+size
	return nil
}

// extend makes the strip longer, if nobody has written behind it.
func (p *Putter) extend(n int) bool {
	v := p.store.volatile
	v.mu.Lock()
	defer v.mu.Unlock()
	missing := p.at + n - p.end
	if p.seg != v.active || p.seg.used != p.end || !v.fitsLocked(missing) {
		return false
	}
	size := p.stripSizeLocked(missing, v)
	v.takeLocked(size, 0)
	p.end += size
	return true
}

// stripSizeLocked returns the size of a strip, of which n bytes are needed and fit. Each is
// twice as long as the last, so that a batch wastes no more than it uses. It needs v.mu.
func (p *Putter) stripSizeLocked(n int, v *volatileLog) int {
	size := max(n, p.size)
	p.size = min(2*p.size, maxStrip)
	return min(size, len(v.active.mem)-v.active.used)
}

// closeStrip gives back the rest of the strip. If others have already written behind it, a
// record fills the rest.
func (p *Putter) closeStrip() {
	v, s := p.store.volatile, p.seg
	v.mu.Lock()
	if s.used == p.end {
		s.used = p.at
	} else if p.at < p.end {
		putHeader(s.mem[p.at:], unused, p.end-p.at-recordHeader)
	}
	s.given += p.refs
	sealed := s != v.active
	v.mu.Unlock()
	v.release(s, stripRefs-p.refs)
	if sealed {
		v.wake() // the maintainer may have skipped the segment
	}
	p.seg, p.refs = nil, 0
}
