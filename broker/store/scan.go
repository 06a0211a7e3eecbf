package store

import (
	"encoding/binary"
	"fmt"
)

// scanned is the result of reading a segment file.
type scanned struct {
	name   string
	number uint64
	mem    []byte // the whole file
	end    int    // of the last valid record
	ended  bool   // there is an end record
	listed bool   // the list of existing segments was found; without it nothing counts
	synced Pos    // the highest position in any mark, including marks after end

	records, messages int // records: other than marks, the list and the end
	segments          []numberSpan
	dropped           []uint64
	journaled
}

// read verifies the file's records up to the first invalid one. It passes them to fn, if fn
// is not nil.
func (s *scanned) read(id uint64, fn func(s *scanned, k kind, rec []byte)) {
	s.end = fileHeader
	for !s.ended {
		k, rec, ok := validAt(id, s.number, s.mem, s.end)
		if !ok || !s.listed && k != kindMark && k != kindSegments {
			break
		}
		s.note(k, rec)
		if fn != nil {
			fn(s, k, rec)
		}
		s.end += align(len(rec)) // the padding may be missing if the file was cut
	}
	if !s.ended {
		s.searchMarks(id)
	}
}

// note keeps what matters of a record, apart from the entries of queues.
func (s *scanned) note(k kind, rec []byte) {
	payload := rec[recordHeader:]
	if k != kindMark && k != kindSegments && k != kindEnd {
		s.records++
	}
	switch k {
	case kindMessage:
		s.messages++
		if slots := slotsOf(rec); len(slots) > 0 {
			s.origins.Add(Pos(slots[0][0]).segment())
		}
	case kindMark:
		s.synced = max(s.synced, Pos(binary.LittleEndian.Uint64(payload)))
	case kindSegments:
		s.listed = true
		for ; len(payload) >= 8; payload = payload[8:] {
			s.segments = append(s.segments, numberSpan{First: binary.LittleEndian.Uint32(payload), Count: binary.LittleEndian.Uint32(payload[4:])})
		}
	case kindDropped:
		for ; len(payload) >= 4; payload = payload[4:] {
			s.dropped = append(s.dropped, uint64(binary.LittleEndian.Uint32(payload)))
		}
	case kindEnd:
		s.ended = true
	}
}

// searchMarks searches for marks after the first invalid record. A message body cannot
// contain one: the checksum depends on the position and on the store's id.
func (s *scanned) searchMarks(id uint64) {
	for at := s.end; at+markBytes <= len(s.mem); at += 8 {
		k, n := header(s.mem[at:])
		if k != kindMark || n != markBytes {
			continue
		}
		if _, rec, ok := validAt(id, s.number, s.mem, at); ok {
			s.synced = max(s.synced, Pos(binary.LittleEndian.Uint64(rec[recordHeader:])))
		}
	}
}

// written returns the end of what was ever written to the file: new files contain zeros.
func (s *scanned) written() int {
	n := max(len(s.mem), s.end)
	for n > s.end && s.mem[n-1] == 0 {
		n--
	}
	return n
}

// hasMessage reports whether a message record starts at an offset.
func (s *scanned) hasMessage(at int) bool {
	if at < fileHeader || at >= s.end {
		return false
	}
	k, _ := header(s.mem[at:])
	return k == kindMessage
}

// corruptError reports that a file of the store is missing, or damaged where it was known to
// be on disk. Nothing is changed.
type corruptError struct {
	File   string
	Offset int64
	Reason string

	cure func(fileSystem) error // puts it right without a loss; nil: nothing does
	plan string                 // what cure does
}

func (e *corruptError) Error() string {
	text := fmt.Sprintf("store: %s is damaged at offset %d: %s; ", e.File, e.Offset, e.Reason)
	if e.cure == nil {
		return text + "it cannot be repaired: restore the whole data directory from a backup"
	}
	return text + "`curfew store repair` can " + e.plan
}
