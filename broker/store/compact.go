package store

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"go.uber.org/zap"
)

// Compaction copies the last messages out of segments that are mostly garbage, so that
// these segments can be dropped. It starts when there is more garbage than live data. It
// takes the emptiest segments first, and only those that are at most half alive, so it
// never copies more than it frees.
//
// First a message is copied. Then the owner is asked, entry by entry and under the queue's
// lock, to let the entry refer to the copy (Options.Relocate). Then that is journaled. An
// entry that leaves its queue before that is not moved. An entry that leaves after it is settled
// at the copy, whose record comes before the settlement. After a crash in between, both
// positions may be on record, and the later one counts. The entry at the copy is recorded
// with its terms at that moment, so amendments that name the original are no longer needed.
//
// In the volatile log a message's slots say which entries refer to it; in the journal the
// recorded entries do. A reference that is found in neither (an entry not recorded yet, a
// reader) stays, and so does the segment until it is released.

func (m *maintainer) compact() {
	for _, s := range m.volatile.sparse(m.opts.slack, false) {
		m.evacuateVolatile(s)
		m.makeReady()
	}
	if m.journal == nil {
		return
	}
	for _, s := range m.journal.sparse(m.opts.slack, m.journal.spare.isFull()) {
		if err := m.evacuate(s); err != nil {
			if !errors.Is(err, ErrFull) && !errors.Is(err, errClosed) {
				_ = m.journal.fail(err)
			}
			return
		}
		m.makeReady()
	}
}

// retryAfterSegments is how many segments are started before compaction tries again to
// empty a segment that it could not empty.
const retryAfterSegments = 16

// sparse returns the segments to evacuate now, the emptiest first. lowSpace means that space
// is worth more work: copying three bytes to free one. Only the maintainer calls it.
func (a *appender) sparse(slack int64, lowSpace bool) []*segment {
	a.mu.Lock()
	events, next, active, segments := a.events, a.next, a.active, a.segments
	a.mu.Unlock()
	if events < a.nextCompaction && !lowSpace {
		return nil
	}
	a.nextCompaction = events + max(4, uint64(segments/8))
	var live, mapped int64
	var found []*segment
	a.table.each(func(s *segment) bool {
		if s == active || s.number >= next || s.hasStrip() {
			return true
		}
		l := s.live()
		live += l
		mapped += int64(len(s.mem))
		worth := l*2 <= int64(s.used) || lowSpace && l*4 <= int64(s.used)*3
		if l > 0 && worth && (s.tried == 0 || s.tried+retryAfterSegments <= next) {
			found = append(found, s)
		}
		return true
	})
	excess := mapped - live - (live + slack)
	if lowSpace {
		excess = mapped - live
	}
	slices.SortFunc(found, func(a, b *segment) int { return int(a.live() - b.live()) })
	for i, s := range found {
		if excess <= 0 {
			return found[:i]
		}
		excess -= int64(len(s.mem))
		s.tried = next
	}
	return found
}

// evacuateVolatile moves the messages out of a sealed segment of the volatile log.
func (m *maintainer) evacuateVolatile(s *segment) {
	if !s.tryRetain() {
		return
	}
	defer m.volatile.release(s, 1)
	for at := 0; at < s.used; {
		rec := s.mem[at:]
		kind, n := header(rec)
		if kind == unused {
			at += align(n)
			continue
		}
		p := makePos(true, s.number, at)
		m.references = m.references[:0]
		for i := range slotsOf(rec) {
			h := &slotsOf(rec)[i]
			m.addReference(&Enqueue{Queue: atomic.LoadUint64(&h[0]), Seq: atomic.LoadUint64(&h[1]), Pos: p})
		}
		if err := m.moveVolatile(s, rec); errors.Is(err, errClosed) {
			return
		} else if err != nil {
			m.log.Warn("compaction of transient messages stops", zap.Error(err))
			return
		}
		at += align(n)
	}
}

// addReference adds an entry that is still at its position to m.references.
func (m *maintainer) addReference(e *Enqueue) {
	if e.Queue == 0 {
		return
	}
	if _, ok := m.relocate(e.Queue, e.Seq, e.Pos, e.Pos); ok {
		m.references = append(m.references, *e)
	}
}

// moveVolatile copies the message for the entries in m.references.
func (m *maintainer) moveVolatile(s *segment, rec []byte) error {
	if len(m.references) == 0 {
		return nil
	}
	msg := viewMessage(rec)
	p, err := m.volatile.put(&msg, len(m.references), copying)
	if err != nil {
		return err
	}
	copied := m.volatile.table.get(p.segment())
	for i := range m.references {
		e := &m.references[i]
		m.volatile.enqueued(p, e.Queue, e.Seq)
	}
	for i := range m.references {
		e := &m.references[i]
		if _, ok := m.relocate(e.Queue, e.Seq, e.Pos, p); ok {
			m.volatile.release(s, 1)
		} else {
			m.volatile.release(copied, 1)
		}
	}
	return nil
}

// evacuate moves the messages out of a complete segment of the journal.
func (m *maintainer) evacuate(s *segment) error {
	j := m.journal
	if !s.tryRetain() {
		return nil
	}
	defer j.release(s, 1)
	if m.existingOf(s.origins) > 0 || !m.findEntries(s) {
		return nil
	}
	slices.SortStableFunc(m.found, func(a, b Enqueue) int { return a.Pos.offset() - b.Pos.offset() })
	if len(s.mem) > j.memory.size && !j.spare.isFull() && m.foundBytes(s)*2 > s.used {
		return nil // what the references suggested is wrong where one message is so large
	}
	for entries := m.found; len(entries) > 0; {
		n := 1
		for n < len(entries) && entries[n].Pos == entries[0].Pos {
			n++
		}
		m.references = m.references[:0]
		for i := range entries[:n] {
			m.addReference(&entries[i])
		}
		if err := m.move(s); err != nil {
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// foundBytes is the size of the messages of s that entries in m.found, which is sorted, still refer to.
func (m *maintainer) foundBytes(s *segment) (size int) {
	last := Pos(0)
	for i := range m.found {
		e := &m.found[i]
		if e.Pos == last {
			continue
		}
		if _, ok := m.relocate(e.Queue, e.Seq, e.Pos, e.Pos); ok {
			_, n := header(s.mem[e.Pos.offset():])
			size, last = size+n, e.Pos
		}
	}
	return size
}

// findEntries collects in m.found the entries that may refer to messages of s, from the
// records of s and of the segments that refer to it. It returns false if one of those is
// not complete yet.
func (m *maintainer) findEntries(s *segment) bool {
	m.found = m.found[:0]
	j, complete := m.journal, true
	j.table.each(func(other *segment) bool {
		j.mu.Lock()
		refers := other == s || other.enters.Has(s.number)
		complete = !refers || other.complete
		j.mu.Unlock()
		if !refers || !complete {
			return complete
		}
		other.eachFact(func(f *facts) {
			f.eachEntry(func(e Enqueue) {
				if e.Pos.segment() == s.number {
					m.found = append(m.found, e)
				}
			})
		})
		return true
	})
	return complete
}

// move copies a message of s for the entries in m.references. It checks the message first: a
// copy must not give a damaged message a valid checksum.
func (m *maintainer) move(s *segment) error {
	if len(m.references) == 0 {
		return nil
	}
	j, old := m.journal, m.references[0].Pos
	kind, rec, ok := validAt(j.id, s.number, s.mem, old.offset())
	if !ok || kind != kindMessage {
		return fmt.Errorf("%s: damaged record at offset %d", fileName(s.number), old.offset())
	}
	msg := viewMessage(rec)
	p, err := j.put(&msg, len(m.references), old, copying)
	if err != nil {
		return err
	}
	copied := j.table.get(p.segment())
	moved := m.references[:0]
	m.amends = m.amends[:0]
	for _, e := range m.references {
		now, ok := m.relocate(e.Queue, e.Seq, old, p)
		if !ok {
			j.release(copied, 1)
			continue
		}
		e.Pos, e.ExpiresAt, e.Flags = p, now.ExpiresAt, now.Flags
		moved = append(moved, e)
		if (now.Deliveries > 0 || now.WaitsUntil != 0) && e.Durable {
			m.amends = append(m.amends, amendment{e.Queue, e.Seq, uint32(p.segment()), now})
		}
	}
	since := j.lock()
	if len(m.amends) > 0 {
		// Valid as of the copy: an amendment that names the copy's segment comes later. Before
		// the entries: without them it applies to the original as well.
		j.putAmendsLocked(m.amends, p+1)
	}
	j.enqueuedLocked(moved)
	j.unlock(since)
	j.release(s, int64(len(moved)))
	return nil
}
