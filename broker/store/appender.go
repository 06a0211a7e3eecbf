package store

import (
	"time"

	"curfew/broker/deadline"
)

// appender is the part that both logs share: a sequence of segments, of which the newest is
// appended to.
type appender struct {
	memory *mappings
	table  table
	// dead takes, under mu, a sealed segment whose last reference is gone. It returns the
	// segment if its memory may be released.
	dead func(*segment) *segment
	wake func() // wakes the maintainer; called when a segment is sealed

	// holds measures how long mu was held for what takes longest: records of many entries, and
	// the start of a segment.
	holds deadline.Longest

	mu       mutex
	space    cond     // of mu: publishers wait here for room, or for the end
	active   *segment // nil before the first record
	next     uint64   // number of the next segment
	segments int
	mapped   int64  // bytes
	resident int64  // bytes of sealed segments that are not paged
	events   uint64 // total of segments sealed or dead
	closed   bool

	nextCompaction uint64 // events at which compaction looks again; used by the maintainer only
	paging         uint64 // all segments before this number are paged or gone; used by the maintainer only
}

// lock locks mu, and unlock notes how long it was held since then.
func (a *appender) lock() (since time.Time) {
	a.mu.Lock()
	return time.Now()
}

func (a *appender) unlock(since time.Time) {
	a.mu.Unlock()
	a.noteHeld(since)
}

func (a *appender) noteHeld(since time.Time) {
	now := time.Now()
	a.holds.Add(deadline.Instant(now.UnixMicro()), now.Sub(since))
}

// fitsLocked reports whether n bytes can be appended without a new segment.
func (a *appender) fitsLocked(n int) bool {
	return a.active != nil && a.active.used+n <= len(a.active.mem)
}

// startLocked makes mem the active segment.
func (a *appender) startLocked(mem []byte) *segment {
	s := &segment{number: a.next, mem: mem}
	s.refs.Store(1)
	a.next++
	a.active = s
	a.addLocked(s)
	return s
}

// sealLocked ends appending to the active segment.
func (a *appender) sealLocked() {
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

// takeLocked reserves n bytes of the active segment, which must have room for them.
func (a *appender) takeLocked(n, refs int) (s *segment, at int) {
	s = a.active
	at = s.used
	s.used += n
	if refs > 0 {
		s.given += int64(refs)
		s.refs.Add(int64(refs))
	}
	return s, at
}

func (a *appender) addLocked(s *segment) {
	a.table.set(s)
	a.segments++
	a.mapped += int64(len(s.mem))
}

// forgetLocked removes a sealed segment from the table.
func (a *appender) forgetLocked(s *segment) {
	a.table.clear(s.number)
	a.segments--
	a.mapped -= int64(len(s.mem))
	if !s.paged {
		a.noteFreedLocked(s)
	}
}

// noteFreedLocked records that the segment no longer takes memory.
func (a *appender) noteFreedLocked(s *segment) {
	a.resident -= int64(len(s.mem))
	a.space.Broadcast()
}

// release gives back n references to the segment, and lets it go with the last one.
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

// shut ends appending.
func (a *appender) shut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.space.Broadcast()
}

func (a *appender) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active = nil
	a.table.each(func(s *segment) bool {
		unmap(s.mem)
		return true
	})
	a.table.all.Store(nil)
}
