package keeper

import (
	"math"
	"time"

	"curfew/broker/deadline"
)

// never is the deadline of a message without TTL.
const never deadline.Instant = math.MaxInt64

// none is the index of no entry.
const none = math.MaxUint32

// entry is one held message, 64 bytes. Its body is not kept.
type entry struct {
	deadline    deadline.Instant // when it expires, or at the latest if the age is not known; or never
	due         deadline.Instant // when it is given back next: at its deadline, for another try, or by a hint
	fingerprint uint64
	tag         uint64 // delivery tag on the channel of the stretch
	stretch     uint32
	prev, next  uint32 // in the stretch, by tag; next also links the free entries
	position    uint32 // in the heap; none if it never expires
	size        uint32 // of the body
	taken       uint32 // when it was taken, in seconds since the keeper's start
	flags       flags
	early       uint8  // how often it came back although it was due
	consumption uint16 // of the stretch
}

type flags uint8

const (
	unknownAge flags = 1 << iota // deadline is the latest instant possible
	strayed                      // given back because it was taken at the wrong place
	hinted                       // due may be wrong by far: it is taken from the publisher's timestamp, or is perhaps that of an equal message
	stranger                     // it does not belong in its stretch
	inherited                    // deadline is by the clock of another keeper
	untold                       // nobody knows to a quarter of a second when the message entered the queue

	doubtful  = hinted | inherited
	uncertain = unknownAge | untold // its lateness is not known
)

// heldMessages are all messages held, with a heap by due. The zero value is empty.
type heldMessages struct {
	entries []entry
	free    uint32 // index + 1 of the first free entry; 0 is none
	heap    []uint32
	count   int
	bytes   int64
	endless int // of them without TTL
}

func (h *heldMessages) add(e entry) uint32 {
	i := h.free - 1
	if h.free != 0 {
		if next := h.entries[i].next; next == none {
			h.free = 0
		} else {
			h.free = next + 1
		}
	} else {
		i = uint32(len(h.entries))
		h.entries = append(h.entries, entry{})
	}
	e.position = none
	h.entries[i] = e
	h.count++
	h.bytes += int64(e.size)
	if e.due == never {
		h.endless++
	} else {
		h.heap = append(h.heap, i)
		h.up(len(h.heap) - 1)
	}
	return i
}

func (h *heldMessages) remove(i uint32) {
	e := &h.entries[i]
	h.count--
	h.bytes -= int64(e.size)
	if e.position == none {
		h.endless--
	} else {
		at, last := int(e.position), len(h.heap)-1
		h.place(at, h.heap[last])
		h.heap = h.heap[:last]
		if at < last {
			h.up(at)
			h.down(at)
		}
	}
	next := uint32(none)
	if h.free != 0 {
		next = h.free - 1
	}
	*e = entry{next: next, position: none}
	h.free = i + 1
	if h.count == 0 {
		h.entries, h.heap, h.free = shrink(h.entries), shrink(h.heap), 0
	}
}

// shrink gives up an array that one busy hour has made large.
func shrink[T any](s []T) []T {
	if cap(s) > 1<<16 {
		return nil
	}
	return s[:0]
}

// has reports whether a message with that fingerprint is in the stretch.
func (h *heldMessages) has(s *stretch, fingerprint uint64) bool {
	for i := s.first; i != none; i = h.entries[i].next {
		if h.entries[i].fingerprint == fingerprint {
			return true
		}
	}
	return false
}

// doubt notes that messages taken since then, to the second, may have waited in the queue for longer than a moment before that: their deadlines
// stay, and their lateness is not told.
func (h *heldMessages) doubt(l *line, since deadline.Instant) {
	from := uint32(max(0, since.Sub(l.started)) / time.Second)
	for i := range h.entries {
		if e := &h.entries[i]; e.tag != 0 && e.taken >= from {
			e.flags |= untold
		}
	}
	l.given.doubt(since)
}

// first is the entry due next, none if nothing expires.
func (h *heldMessages) first() uint32 {
	if len(h.heap) == 0 {
		return none
	}
	return h.heap[0]
}

func (h *heldMessages) nextDue() deadline.Instant {
	if len(h.heap) == 0 {
		return never
	}
	return h.entries[h.heap[0]].due
}

func (h *heldMessages) before(a, b uint32) bool { return h.entries[a].due < h.entries[b].due }

func (h *heldMessages) place(at int, i uint32) {
	h.heap[at] = i
	h.entries[i].position = uint32(at)
}

const arity = 4

func (h *heldMessages) up(at int) {
	i := h.heap[at]
	for at > 0 {
		parent := (at - 1) / arity
		if !h.before(i, h.heap[parent]) {
			break
		}
		h.place(at, h.heap[parent])
		at = parent
	}
	h.place(at, i)
}

func (h *heldMessages) down(at int) {
	i := h.heap[at]
	for {
		child := at*arity + 1
		if child >= len(h.heap) {
			break
		}
		for c := child + 1; c < min(at*arity+1+arity, len(h.heap)); c++ {
			if h.before(h.heap[c], h.heap[child]) {
				child = c
			}
		}
		if !h.before(h.heap[child], i) {
			break
		}
		h.place(at, h.heap[child])
		at = child
	}
	h.place(at, i)
}
