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
	prev, next  uint32 // in the stretch, by tag
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
	untold                       // nobody knows to a quarter of a second when the message entered the queue

	uncertain = unknownAge | untold // its lateness is not known
)

// heldMessages are all messages held. The zero value is empty. It is not copied.
type heldMessages struct {
	entries []entry
	free    []uint32              // entries of no message
	due     deadline.Heap[uint32] // those that expire, by due
	count   int
	bytes   int64
	endless int // of them without TTL
}

func (h *heldMessages) add(e entry) uint32 {
	e.position = none
	i := uint32(len(h.entries))
	if n := len(h.free); n > 0 {
		i, h.free = h.free[n-1], h.free[:n-1]
		h.entries[i] = e
	} else {
		h.entries = append(h.entries, e)
	}
	h.count++
	h.bytes += int64(e.size)
	if e.due == never {
		h.endless++
	} else {
		if h.due.Before == nil {
			h.due.Before = func(a, b uint32) bool { return h.entries[a].due < h.entries[b].due }
			h.due.Moved = func(i uint32, place int) { h.entries[i].position = uint32(place) }
		}
		h.due.Push(i)
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
		h.due.Remove(int(e.position))
	}
	*e = entry{position: none}
	if h.free = append(h.free, i); h.count == 0 {
		h.entries, h.due.Items, h.free = shrink(h.entries), shrink(h.due.Items), h.free[:0]
	}
}

// shrink gives up an array that one busy hour has made large.
func shrink[T any](s []T) []T {
	if cap(s) > 1<<16 {
		return nil
	}
	return s[:0]
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

// nextDue is when the message at the head of the heap is due.
func (h *heldMessages) nextDue() deadline.Instant {
	if len(h.due.Items) == 0 {
		return never
	}
	return h.entries[h.due.Items[0]].due
}
