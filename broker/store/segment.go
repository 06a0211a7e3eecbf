package store

import "sync/atomic"

// defaultSegmentBytes is the size of a segment. A message that does not fit gets a segment
// of its own size.
const defaultSegmentBytes = 4 << 20

// segment is a range of memory outside the Go heap. Records are appended to it and never
// move within it. It is appended to until it is sealed. It may be dropped once it is sealed
// and nobody refers to it.
type segment struct {
	number uint64
	mem    []byte

	// refs counts the references to its messages, plus one while it is appended to, so that
	// it reaches zero only once, plus stripRefs for each strip that a Putter has open.
	refs atomic.Int64

	// paged: mem holds a file's pages, which the system can read again, not anonymous
	// memory. Written by the maintainer while it holds a reference.
	paged bool

	// Guarded by the log's lock while the segment is appended to or a strip is open;
	// constant afterwards.
	used  int   // bytes appended
	given int64 // references given in total
	alone bool  // it has one message, which did not fit into a segment of the common size

	// tried is the number of the newest segment at the time when compaction last failed to
	// empty this one. Used by the maintainer only.
	tried uint64

	journaled
}

// hasStrip reports whether a Putter has a strip of it open. A sealed segment without an
// open strip never has one again.
func (s *segment) hasStrip() bool { return s.refs.Load() >= stripRefs }

// live estimates the bytes of messages still referred to. It is invalid while a strip is
// open.
func (s *segment) live() int64 {
	refs := s.refs.Load()
	if s.given == 0 || refs <= 0 {
		return 0
	}
	if s.alone {
		return int64(s.used)
	}
	return int64(float64(s.used) * min(1, float64(refs)/float64(s.given)))
}

// tryRetain takes a reference, unless the last one is gone.
func (s *segment) tryRetain() bool {
	for {
		n := s.refs.Load()
		if n <= 0 {
			return false
		}
		if s.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}
