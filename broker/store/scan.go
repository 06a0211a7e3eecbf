package store

import (
	"encoding/binary"
	"fmt"
)

// scanned is what reading a segment file found.
type scanned struct {
	name   string
	number uint64
	mem    []byte // the whole file
	end    int    // of the last valid record
	ended  bool   // by an end record
	listed bool   // the list of existing segments is there: else nothing counts
	synced Pos    // the highest of any mark, also of those after end

	messages int
	segments spans
	dropped  []uint64
	journaled
}

// read checks the file's records up to the first that is not valid. fn gets them
// unless nil.
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
		s.end += align(len(rec)) // of which the padding may be missing from a cut file
	}
	if !s.ended {
		s.searchMarks(id)
	}
}

// note keeps what matters of a record besides the entries of queues.
func (s *scanned) note(k kind, rec []byte) {
	payload := rec[recordHeader:]
	switch k {
	case kindMessage:
		s.messages++
		if slots := slotsOf(rec); len(slots) > 0 {
			s.origins.add(Pos(slots[0][0]).segment())
		}
	case kindMark:
		s.mark(payload)
	case kindSegments:
		s.listed = true
		for ; len(payload) >= 8; payload = payload[8:] {
			s.segments = append(s.segments, span{binary.LittleEndian.Uint32(payload), binary.LittleEndian.Uint32(payload[4:])})
		}
	case kindDropped:
		for ; len(payload) >= 4; payload = payload[4:] {
			s.dropped = append(s.dropped, uint64(binary.LittleEndian.Uint32(payload)))
		}
	case kindEnd:
		s.ended = true
	}
}

func (s *scanned) mark(payload []byte) {
	s.synced = max(s.synced, Pos(binary.LittleEndian.Uint64(payload)))
}

// searchMarks looks for marks after the first invalid record. A body cannot hold
// one: its checksum depends on where it stands and on the store's id.
func (s *scanned) searchMarks(id uint64) {
	for at := s.end; at+markBytes <= len(s.mem); at += 8 {
		k, n := header(s.mem[at:])
		if k != kindMark || n != markBytes {
			continue
		}
		if _, rec, ok := validAt(id, s.number, s.mem, at); ok {
			s.mark(rec[recordHeader:])
		}
	}
}

// written is where what was ever written to the file ends: files are made of
// zeros.
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

// CorruptError says that a file of the store is damaged where it was known to be
// on the disk. Nothing is changed on account of it.
type CorruptError struct {
	File   string
	Offset int64
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("store: %s is damaged at offset %d: %s", e.File, e.Offset, e.Reason)
}
