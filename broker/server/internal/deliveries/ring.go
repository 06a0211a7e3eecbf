package deliveries

import (
	"maps"
	"slices"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// delivery is one delivery that the client has not settled.
type delivery struct {
	queue    *broker.Queue    // nil: settled
	seq      queue.Seq        // 0: its lock lapsed, and it was requeued
	consumer *Consumer        // nil: basic.get
	at       deadline.Instant // when it was delivered, on the broker's clock
	locked   bool             // it was delivered with a lock
}

// brokers returns the broker's part of the consumer; nil for basic.get.
func (m *delivery) brokers() *broker.Consumer {
	if m.consumer == nil {
		return nil
	}
	return &m.consumer.Consumer
}

// ring holds a channel's deliveries by delivery tag. It is a ring, since tags ascend
// by one and are mostly settled in order. The few deliveries that are left far behind move
// to a map, so that one message held for a long time does not make the ring as long as
// everything delivered since. The zero value is empty, and its first tag is 1. Guarded by
// Deliveries.mu.
type ring struct {
	slots      []delivery // length a power of two, or nil
	first      uint64     // all tags up to it are settled or in old
	next       uint64     // the last tag given out
	count      int        // not settled
	old        map[uint64]delivery
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
func (r *ring) add(m delivery) (tag uint64) {
	if int(r.next-r.first) == len(r.slots) {
		r.grow()
	}
	r.next++
	*r.slot(r.next) = m
	r.count++
	return r.next
}

// skip gives out a tag for a delivery that needs no settlement.
func (r *ring) skip() (tag uint64) {
	if r.first == r.next {
		r.first++
		r.next++
		return r.next
	}
	r.add(delivery{})
	r.count--
	return r.next
}

func (r *ring) slot(tag uint64) *delivery { return &r.slots[tag&uint64(len(r.slots)-1)] }

// grow makes room for one more tag: in a larger ring, or by moving the few deliveries of a
// large ring to old.
func (r *ring) grow() {
	if len(r.slots) >= ringLarge && (r.count-len(r.old))*ringSparse < len(r.slots) {
		r.moveToOld()
		return
	}
	slots := make([]delivery, max(16, 2*len(r.slots)))
	for tag := r.first + 1; tag <= r.next; tag++ {
		slots[tag&uint64(len(slots)-1)] = *r.slot(tag)
	}
	r.slots = slots
}

func (r *ring) moveToOld() {
	if r.old == nil {
		r.old = map[uint64]delivery{}
	}
	for ; r.first < r.next; r.first++ {
		if s := r.slot(r.first + 1); s.queue != nil {
			r.old[r.first+1] = *s
			*s = delivery{}
		}
	}
}

// take removes and returns the delivery with a tag, or returns false if there is none.
func (r *ring) take(tag uint64) (delivery, bool) {
	if tag <= r.first {
		m, ok := r.old[tag]
		if ok {
			delete(r.old, tag)
			r.count--
		}
		return m, ok
	}
	if tag > r.next || r.slot(tag).queue == nil {
		return delivery{}, false
	}
	m := *r.slot(tag)
	*r.slot(tag) = delivery{}
	r.count--
	r.trim()
	return m, true
}

// takeUpTo removes the deliveries up to a tag and appends them to out, in order. 0 means
// all. A tag that was not given out yet takes none. It looks at most tags in the ring; more: there
// are others up to that tag.
func (r *ring) takeUpTo(tag uint64, most int, out []delivery) (_ []delivery, more bool) {
	if tag > r.next {
		return out, false
	}
	if tag == 0 {
		tag = r.next
	}
	for _, t := range slices.Sorted(maps.Keys(r.old)) {
		if t <= tag {
			out = append(out, r.old[t])
			delete(r.old, t)
			r.count--
		}
	}
	end := min(tag, r.first+uint64(most))
	for ; r.first < end; r.first++ {
		if s := r.slot(r.first + 1); s.queue != nil {
			out = append(out, *s)
			*s = delivery{}
			r.count--
		}
	}
	r.trim()
	return out, r.first < tag
}

// takeRange removes the deliveries with the tags first to last and appends them to out, in order.
func (r *ring) takeRange(first, last uint64, out []delivery) []delivery {
	if len(r.old) > 0 {
		for _, t := range slices.Sorted(maps.Keys(r.old)) {
			if t >= first && t <= last {
				out = append(out, r.old[t])
				delete(r.old, t)
				r.count--
			}
		}
	}
	for t := max(first, r.first+1); t <= min(last, r.next); t++ {
		if s := r.slot(t); s.queue != nil {
			out = append(out, *s)
			*s = delivery{}
			r.count--
		}
	}
	r.trim()
	return out
}

// takeOf removes the deliveries of a consumer and appends them to out, in order.
func (r *ring) takeOf(c *Consumer, out []delivery) []delivery {
	for _, t := range r.tagsUpTo(0) {
		m, _ := r.take(t)
		if m.consumer == c {
			out = append(out, m)
			continue
		}
		r.putBack(t, m)
	}
	return out
}

// tagsUpTo lists the tags of the deliveries up to a tag, in order. 0 means all. A tag that
// was not given out yet lists none.
func (r *ring) tagsUpTo(tag uint64) (tags []uint64) {
	if tag > r.next {
		return nil
	}
	if tag == 0 {
		tag = r.next
	}
	for _, t := range slices.Sorted(maps.Keys(r.old)) {
		if t <= tag {
			tags = append(tags, t)
		}
	}
	for t := r.first + 1; t <= tag; t++ {
		if r.slot(t).queue != nil {
			tags = append(tags, t)
		}
	}
	return tags
}

// each calls fn for the deliveries in old, and then for the others from the oldest on until
// fn returns false.
func (r *ring) each(fn func(*delivery) bool) {
	for _, m := range r.old {
		fn(&m)
	}
	for t := r.first + 1; t <= r.next; t++ {
		if m := r.slot(t); m.queue != nil && !fn(m) {
			return
		}
	}
}

// lapse marks the delivery of a message as lost, and returns false if there is none. Locks
// lapse in the order of delivery, so the search starts behind the last one.
func (r *ring) lapse(id uint64, seq queue.Seq) bool {
	for t, m := range r.old {
		if m.seq == seq && m.queue.ID() == id {
			m.seq = 0
			r.old[t] = m
			return true
		}
	}
	from := max(r.lastLapsed, r.first) + 1
	return r.lapseIn(from, r.next, id, seq) || r.lapseIn(r.first+1, min(from-1, r.next), id, seq)
}

func (r *ring) lapseIn(from, to uint64, id uint64, seq queue.Seq) bool {
	for t := from; t <= to; t++ {
		if m := r.slot(t); m.seq == seq && m.queue.ID() == id {
			m.seq, r.lastLapsed = 0, t
			return true
		}
	}
	return false
}

// putBack restores a delivery under the tag with which take returned it.
func (r *ring) putBack(tag uint64, m delivery) {
	r.count++
	if tag > r.first {
		*r.slot(tag) = m
		return
	}
	if r.old == nil {
		r.old = map[uint64]delivery{}
	}
	r.old[tag] = m
}

// trim moves first past what is settled, and releases a large empty ring.
func (r *ring) trim() {
	for r.first < r.next && r.slot(r.first+1).queue == nil {
		r.first++
	}
	if r.first == r.next && len(r.slots) > ringLarge {
		r.slots = nil
	}
}
