package server

import (
	"maps"
	"slices"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// unackedDelivery is one delivery that the client has not settled.
type unackedDelivery struct {
	q   *broker.Queue    // nil: settled
	seq queue.Seq        // 0: its lock lapsed, and it was requeued
	c   *consumer        // nil: basic.get
	at  deadline.Instant // when it was delivered, on the broker's clock

	locked bool // it was delivered with a lock
}

// unackedRing holds a channel's deliveries by delivery tag. It is a ring, since tags ascend
// by one and are mostly settled in order. The few deliveries that are left far behind move
// to a map, so that one message held for a long time does not make the ring as long as
// everything delivered since. The zero value is empty, and its first tag is 1.
type unackedRing struct {
	ring       []unackedDelivery // length a power of two, or nil
	first      uint64            // all tags up to it are settled or in old
	next       uint64            // the last tag given out
	count      int               // not settled
	old        map[uint64]unackedDelivery
	lastLapsed uint64 // the next lapsed delivery is probably behind this tag
}

const (
	// ringLarge is the length at which a sparse ring is emptied into old.
	ringLarge = 1024
	// ringSparse: if only one slot in ringSparse of a large ring is in use, the ring does
	// not grow.
	ringSparse = 8
)

// add gives out the next tag.
func (u *unackedRing) add(h unackedDelivery) (tag uint64) {
	if int(u.next-u.first) == len(u.ring) {
		u.grow()
	}
	u.next++
	*u.slot(u.next) = h
	u.count++
	return u.next
}

// skip gives out a tag for a delivery that needs no settlement.
func (u *unackedRing) skip() (tag uint64) {
	if u.first == u.next {
		u.first++
		u.next++
		return u.next
	}
	u.add(unackedDelivery{})
	u.count--
	return u.next
}

func (u *unackedRing) slot(tag uint64) *unackedDelivery { return &u.ring[tag&uint64(len(u.ring)-1)] }

// grow makes room for one more tag: in a larger ring, or by moving the few deliveries of a
// large ring to old.
func (u *unackedRing) grow() {
	if len(u.ring) >= ringLarge && (u.count-len(u.old))*ringSparse < len(u.ring) {
		u.moveToOld()
		return
	}
	ring := make([]unackedDelivery, max(16, 2*len(u.ring)))
	for tag := u.first + 1; tag <= u.next; tag++ {
		ring[tag&uint64(len(ring)-1)] = *u.slot(tag)
	}
	u.ring = ring
}

func (u *unackedRing) moveToOld() {
	if u.old == nil {
		u.old = map[uint64]unackedDelivery{}
	}
	for ; u.first < u.next; u.first++ {
		if s := u.slot(u.first + 1); s.q != nil {
			u.old[u.first+1] = *s
			*s = unackedDelivery{}
		}
	}
}

// take removes and returns the delivery with a tag, or returns false if there is none.
func (u *unackedRing) take(tag uint64) (unackedDelivery, bool) {
	if tag <= u.first {
		h, ok := u.old[tag]
		if ok {
			delete(u.old, tag)
			u.count--
		}
		return h, ok
	}
	if tag > u.next || u.slot(tag).q == nil {
		return unackedDelivery{}, false
	}
	h := *u.slot(tag)
	*u.slot(tag) = unackedDelivery{}
	u.count--
	u.trim()
	return h, true
}

// takeUpTo removes all deliveries up to a tag and appends them to out, in order. 0 means
// all. A tag that was not given out yet takes none.
func (u *unackedRing) takeUpTo(tag uint64, out []unackedDelivery) []unackedDelivery {
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
			*s = unackedDelivery{}
			u.count--
		}
	}
	u.trim()
	return out
}

// tagsUpTo lists the tags of the deliveries up to a tag, in order. 0 means all. A tag that
// was not given out yet lists none.
func (u *unackedRing) tagsUpTo(tag uint64) (tags []uint64) {
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

// each calls fn for the deliveries in old, and then for the others from the oldest on until
// fn returns false.
func (u *unackedRing) each(fn func(*unackedDelivery) bool) {
	for _, h := range u.old {
		fn(&h)
	}
	for t := u.first + 1; t <= u.next; t++ {
		if h := u.slot(t); h.q != nil && !fn(h) {
			return
		}
	}
}

// page appends to out the deliveries behind a tag, some thousand of them and those in old, and returns where to go on. There are no more
// if it appends none.
func (u *unackedRing) page(after uint64, out []unackedDelivery) (_ []unackedDelivery, next uint64) {
	if after == 0 {
		for _, h := range u.old {
			out = append(out, h)
		}
	}
	t := max(after, u.first)
	for ; t < u.next && len(out) < 4*ringLarge; t++ {
		if h := u.slot(t + 1); h.q != nil {
			out = append(out, *h)
		}
	}
	return out, max(t, 1) // 0 is where it begins
}

// lapse marks the delivery of a message as lost, and returns false if there is none. Locks
// lapse in the order of delivery, so the search starts behind the last one.
func (u *unackedRing) lapse(id uint64, seq queue.Seq) bool {
	for t, h := range u.old {
		if h.seq == seq && h.q.ID() == id {
			h.seq = 0
			u.old[t] = h
			return true
		}
	}
	from := max(u.lastLapsed, u.first) + 1
	return u.lapseIn(from, u.next, id, seq) || u.lapseIn(u.first+1, min(from-1, u.next), id, seq)
}

func (u *unackedRing) lapseIn(from, to uint64, id uint64, seq queue.Seq) bool {
	for t := from; t <= to; t++ {
		if h := u.slot(t); h.seq == seq && h.q.ID() == id {
			h.seq, u.lastLapsed = 0, t
			return true
		}
	}
	return false
}

// putBack restores a delivery under the tag with which take returned it.
func (u *unackedRing) putBack(tag uint64, h unackedDelivery) {
	u.count++
	if tag > u.first {
		*u.slot(tag) = h
		return
	}
	if u.old == nil {
		u.old = map[uint64]unackedDelivery{}
	}
	u.old[tag] = h
}

// trim moves first past what is settled, and releases a large empty ring.
func (u *unackedRing) trim() {
	for u.first < u.next && u.slot(u.first+1).q == nil {
		u.first++
	}
	if u.first == u.next && len(u.ring) > ringLarge {
		u.ring = nil
	}
}
