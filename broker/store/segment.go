package store

import (
	"sync"
	"sync/atomic"
)

// DefaultSegmentBytes is the size of a segment. A message that does not fit gets
// a segment of its own size.
const DefaultSegmentBytes = 4 << 20

// segment is a run of memory outside the Go heap to which records are appended
// and within which nothing moves. It is appended to until it is sealed; it may go
// once it is sealed and nobody refers to it.
type segment struct {
	number uint64
	mem    []byte

	// refs counts the references to messages in it, plus one while it is
	// appended to, so that zero is reached once.
	refs atomic.Int64

	// The rest is guarded by the log's lock while the segment is appended to and
	// constant afterwards.
	used  int   // bytes appended
	given int64 // references ever given
}

// live estimates the bytes of messages still referred to.
func (s *segment) live() int64 {
	if s.given == 0 {
		return 0
	}
	return int64(float64(s.used) * float64(s.refs.Load()) / float64(s.given))
}

// appender is the part common to both logs: a row of segments of which the
// newest is appended to.
type appender struct {
	volatile bool
	memory   *mappings
	table    table

	mu       sync.Mutex
	active   *segment // nil before the first record
	next     uint64   // number of the next segment
	segments int
	mapped   int64 // bytes
	closed   bool
}

// room makes the active segment one with n bytes to spare. The caller holds mu.
func (a *appender) room(n int) error {
	if s := a.active; s != nil && s.used+n <= len(s.mem) {
		return nil
	}
	if a.closed {
		return ErrClosed
	}
	mem, err := a.memory.get(max(a.memory.size, n))
	if err != nil {
		return err
	}
	a.seal()
	a.open(mem)
	return nil
}

func (a *appender) open(mem []byte) {
	s := &segment{number: a.next, mem: mem}
	s.refs.Store(1)
	a.next++
	a.active = s
	a.table.set(s)
	a.segments++
	a.mapped += int64(len(mem))
}

// seal ends appending to the active segment. The caller holds mu.
func (a *appender) seal() {
	s := a.active
	a.active = nil
	if s != nil && s.refs.Add(-1) == 0 {
		a.forget(s)
		a.memory.put(s.mem)
	}
}

// take reserves n bytes of the active segment. The caller holds mu and has
// called room.
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

func (a *appender) forget(s *segment) {
	a.table.clear(s.number)
	a.segments--
	a.mapped -= int64(len(s.mem))
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
	a.forget(s)
	a.mu.Unlock()
	a.memory.put(s.mem)
}
