package store

import "sync"

// appender is what both logs have in common: a row of segments of which the
// newest is appended to.
type appender struct {
	memory *mappings
	table  table
	// dead takes a sealed segment whose last reference is gone, under mu. It
	// returns it if its memory may go.
	dead func(*segment) *segment
	wake func() // the keeper; called when a segment is sealed

	mu       sync.Mutex
	space    sync.Cond // of mu: there may be room for what publishers wait to add, or the end
	active   *segment  // nil before the first record
	next     uint64    // number of the next segment
	segments int
	mapped   int64  // bytes
	resident int64  // bytes of sealed segments that are not paged
	events   uint64 // segments sealed or dead, ever
	closed   bool

	look   uint64 // events at which compaction looks again; the keeper's own
	paging uint64 // all segments before this number are paged or gone; the keeper's own
}

// fits reports whether n bytes can be appended without a new segment. The caller
// holds mu.
func (a *appender) fits(n int) bool { return a.active != nil && a.active.used+n <= len(a.active.mem) }

// start makes mem the active segment. The caller holds mu.
func (a *appender) start(mem []byte) *segment {
	s := &segment{number: a.next, mem: mem}
	s.refs.Store(1)
	a.next++
	a.active = s
	a.add(s)
	return s
}

// seal ends appending to the active segment. The caller holds mu.
func (a *appender) seal() {
	s := a.active
	if s == nil {
		return
	}
	a.active = nil
	a.resident += int64(len(s.mem))
	a.events++
	if s.refs.Add(-1) == 0 {
		a.memory.dispose(a.dead(s))
	}
	a.wake()
}

// take reserves n bytes of the active segment, which has them. The caller holds mu.
func (a *appender) take(n, refs int) (s *segment, at int) {
	s = a.active
	at = s.used
	s.used += n
	if refs > 0 {
		s.given += int64(refs)
		s.refs.Add(int64(refs))
	}
	return s, at
}

func (a *appender) add(s *segment) {
	a.table.set(s)
	a.segments++
	a.mapped += int64(len(s.mem))
}

// forget takes a sealed segment out of the table. The caller holds mu.
func (a *appender) forget(s *segment) {
	a.table.clear(s.number)
	a.segments--
	a.mapped -= int64(len(s.mem))
	if !s.paged {
		a.eased(s)
	}
}

// eased notes that the segment no longer takes memory. The caller holds mu.
func (a *appender) eased(s *segment) {
	a.resident -= int64(len(s.mem))
	a.space.Broadcast()
}

// release takes n references from the segment and lets it go with the last.
func (a *appender) release(s *segment, n int64) {
	left := s.refs.Add(-n)
	if left > 0 {
		return
	}
	if left < 0 {
		panic("store: a message was released more often than it was referred to")
	}
	a.mu.Lock()
	a.events++
	s = a.dead(s)
	a.mu.Unlock()
	a.memory.dispose(s)
	a.wake()
}

func (a *appender) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active = nil
	a.table.each(func(s *segment) bool {
		unmap(s.mem)
		return true
	})
	a.table.dir.Store(nil)
}
