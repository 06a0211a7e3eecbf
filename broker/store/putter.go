package store

// Putter puts the messages of one publisher, a batch at a time. From the second of a
// batch on it writes volatile ones into strips of the active segment that nobody else
// writes to, so that a batch takes the log's lock a few times and not for each message:
// with several publishers that lock was a sixth of the processor time of a transient
// message.
//
// A segment with an open strip is left alone by compaction and stays in memory, so one
// goroutine has one Putter, which lets its strip go before it waits for anything, and
// calls End before it waits for anything else. What was put may be used by anybody after
// End. A batch has to have ended before the store is closed.
type Putter struct {
	store *Store
	size  int // of the next strip; 0: the batch has not begun

	// The open strip.
	seg     *segment // nil: none
	at, end int      // what is left of it
	refs    int64    // given in it
}

const (
	minStrip = 2 << 10
	maxStrip = 16 << 10 // larger messages are put into none

	// stripRefs is what an open strip counts for among its segment's references:
	// more than there can be of others.
	stripRefs = 1 << 40

	// unused is the kind of a record that fills what is left of a strip.
	unused kind = 0
)

// NewPutter returns a Putter whose batch has not begun.
func (s *Store) NewPutter() *Putter { return &Putter{store: s} }

// Put is Store.Put. End has to follow soon, with the end of the batch.
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
	if err := p.reach(align(n)); err != nil {
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
		p.close()
	}
}

// reach has n bytes left in the open strip.
func (p *Putter) reach(n int) error {
	if p.seg != nil {
		if p.at+n <= p.end || p.extend(n) {
			return nil
		}
		p.close()
	}
	v := p.store.volatile
	v.mu.Lock()
	defer v.mu.Unlock()
	if err := v.makeRoom(n, publishing); err != nil {
		return err
	}
	size := p.stripFor(n, v)
	s, at := v.take(size, 0)
	s.refs.Add(stripRefs)
	p.seg, p.at, p.end = s, at, at+size
	return nil
}

// extend makes the strip longer if nobody has written behind it.
func (p *Putter) extend(n int) bool {
	v := p.store.volatile
	v.mu.Lock()
	defer v.mu.Unlock()
	missing := p.at + n - p.end
	if p.seg != v.active || p.seg.used != p.end || !v.fits(missing) {
		return false
	}
	size := p.stripFor(missing, v)
	v.take(size, 0)
	p.end += size
	return true
}

// stripFor is how long a strip gets of which n bytes are needed, and fit. Each is twice as
// long as the last, so that a batch wastes no more than it uses. The caller holds v.mu.
func (p *Putter) stripFor(n int, v *volatileLog) int {
	size := max(n, p.size)
	p.size = min(2*p.size, maxStrip)
	return min(size, len(v.active.mem)-v.active.used)
}

// close gives back what is left of the strip. What others have written behind it
// already stays apart from it by a record of its own.
func (p *Putter) close() {
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
		v.wake() // the keeper may have passed it by
	}
	p.seg, p.refs = nil, 0
}
