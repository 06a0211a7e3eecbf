package server

import (
	"maps"
	"slices"

	"curfew/broker"
	"curfew/broker/queue"
)

// held is one delivery that the client has not settled.
type held struct {
	q   *broker.Queue // nil: settled
	seq queue.Seq     // 0: its lock lapsed, and it went back
	c   *consumer     // nil: a get
	at  int64         // Unix µs of the broker's clock: when it was delivered

	locked bool // it was delivered with a lock
}

// unacked holds a channel's deliveries by delivery tag: a ring, since tags ascend
// by one and are mostly settled in order. The few that are left far behind move to
// a map, so that one message held for long does not make the ring as long as all
// that was delivered since. The zero value is empty and its first tag is 1.
type unacked struct {
	ring   []held // length a power of two, or nil
	first  uint64 // tags up to it are settled, or in old
	next   uint64 // last tag given
	count  int    // not settled
	old    map[uint64]held
	looked uint64 // tag after which the next lapsed delivery is likely to stand
}

const (
	// ringLarge is the length from which a ring is worth emptying into old.
	ringLarge = 1024
	// ringSparse of a large ring's slots being in use, it is grown no further.
	ringSparse = 8
)

// add gives out the next tag.
func (u *unacked) add(h held) (tag uint64) {
	if int(u.next-u.first) == len(u.ring) {
		u.grow()
	}
	u.next++
	*u.slot(u.next) = h
	u.count++
	return u.next
}

// skip gives out a tag for a delivery that needs no settlement.
func (u *unacked) skip() (tag uint64) {
	if u.first == u.next {
		u.first++
		u.next++
		return u.next
	}
	u.add(held{})
	u.count--
	return u.next
}

func (u *unacked) slot(tag uint64) *held { return &u.ring[tag&uint64(len(u.ring)-1)] }

// grow makes room for one more tag: in a larger ring, or by moving the few that
// are held out of a large one.
func (u *unacked) grow() {
	if len(u.ring) >= ringLarge && (u.count-len(u.old))*ringSparse < len(u.ring) {
		u.retire()
		return
	}
	ring := make([]held, max(16, 2*len(u.ring)))
	for tag := u.first + 1; tag <= u.next; tag++ {
		ring[tag&uint64(len(ring)-1)] = *u.slot(tag)
	}
	u.ring = ring
}

func (u *unacked) retire() {
	if u.old == nil {
		u.old = map[uint64]held{}
	}
	for ; u.first < u.next; u.first++ {
		if s := u.slot(u.first + 1); s.q != nil {
			u.old[u.first+1] = *s
			*s = held{}
		}
	}
}

// take removes and returns the delivery of a tag; false if there is none.
func (u *unacked) take(tag uint64) (held, bool) {
	if tag <= u.first {
		h, ok := u.old[tag]
		if ok {
			delete(u.old, tag)
			u.count--
		}
		return h, ok
	}
	if tag > u.next || u.slot(tag).q == nil {
		return held{}, false
	}
	h := *u.slot(tag)
	*u.slot(tag) = held{}
	u.count--
	u.settle()
	return h, true
}

// takeUpTo removes all deliveries up to a tag, in order, and appends them; 0
// stands for all there are. A tag not given yet takes none.
func (u *unacked) takeUpTo(tag uint64, out []held) []held {
	if tag > u.next {
		return out
	}
	if tag == 0 {
		tag = u.next
	}
	for _, t := range slices.Sorted(maps.Keys(u.old)) {
		if t <= tag {
			out = append(out, u.old[t])
			delete(u.old, t)
			u.count--
		}
	}
	for ; u.first < tag; u.first++ {
		if s := u.slot(u.first + 1); s.q != nil {
			out = append(out, *s)
			*s = held{}
			u.count--
		}
	}
	u.settle()
	return out
}

// tagsUpTo lists the tags of the deliveries up to a tag, in order; 0 stands for
// all there are. A tag not given yet names none.
func (u *unacked) tagsUpTo(tag uint64) (tags []uint64) {
	if tag > u.next {
		return nil
	}
	if tag == 0 {
		tag = u.next
	}
	for _, t := range slices.Sorted(maps.Keys(u.old)) {
		if t <= tag {
			tags = append(tags, t)
		}
	}
	for t := u.first + 1; t <= tag; t++ {
		if u.slot(t).q != nil {
			tags = append(tags, t)
		}
	}
	return tags
}

// each calls fn with the deliveries held: those of a map, then the others by age
// until fn returns false.
func (u *unacked) each(fn func(*held) bool) {
	for _, h := range u.old {
		fn(&h)
	}
	for t := u.first + 1; t <= u.next; t++ {
		if h := u.slot(t); h.q != nil && !fn(h) {
			return
		}
	}
}

// lapse marks the delivery of a message as lost and returns false if it is not
// held. Locks lapse in the order of delivery, so it stands behind the last one.
func (u *unacked) lapse(q *broker.Queue, seq queue.Seq) bool {
	for t, h := range u.old {
		if h.q == q && h.seq == seq {
			h.seq = 0
			u.old[t] = h
			return true
		}
	}
	from := max(u.looked, u.first) + 1
	return u.lapseIn(from, u.next, q, seq) || u.lapseIn(u.first+1, min(from-1, u.next), q, seq)
}

func (u *unacked) lapseIn(from, to uint64, q *broker.Queue, seq queue.Seq) bool {
	for t := from; t <= to; t++ {
		if h := u.slot(t); h.q == q && h.seq == seq {
			h.seq, u.looked = 0, t
			return true
		}
	}
	return false
}

// putBack holds a delivery again that take gave out, under its old tag.
func (u *unacked) putBack(tag uint64, h held) {
	u.count++
	if tag > u.first {
		*u.slot(tag) = h
		return
	}
	if u.old == nil {
		u.old = map[uint64]held{}
	}
	u.old[tag] = h
}

// settle moves first past what is settled, and lets a large empty ring go.
func (u *unacked) settle() {
	for u.first < u.next && u.slot(u.first+1).q == nil {
		u.first++
	}
	if u.first == u.next && len(u.ring) > ringLarge {
		u.ring = nil
	}
}
