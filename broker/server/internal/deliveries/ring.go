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

// ring holds a channel's deliveries by delivery tag. It is a ring of chunks, since tags ascend by one and are mostly settled
// in order, and there may be millions: none is copied when the ring grows. The few deliveries that are left far behind
// move to a map, so that one message held for a long time does not make the ring as long as everything delivered since.
// The zero value is empty, and its first tag is 1. Guarded by Deliveries.mu.
type ring struct {
	chunks     []*chunk // length a power of two, or nil. Those of the tags behind first up to next are there
	spare      *chunk   // nil, or an empty one
	first      uint64   // all tags up to it are settled or in old
	next       uint64   // the last tag given out
	count      int      // not settled
	old        map[uint64]delivery
	lastLapsed uint64 // the next lapsed delivery is probably behind this tag
}

const chunkTags = 32

// chunk has the deliveries of chunkTags tags. The first one's tag is a multiple of that.
type chunk [chunkTags]delivery

const (
	// ringLarge is how many tags a ring has from which on it is thinned out and gives chunks back. A usual prefetch of 1,000 takes
	// half of that, and all its chunks stay.
	ringLarge = 2048
	// ringSparse: if only one tag in ringSparse of a large ring is in use, the ring does not grow.
	ringSparse = 8
)

func (r *ring) tags() int { return len(r.chunks) * chunkTags }

// add gives out the next tag.
func (r *ring) add(m delivery) (tag uint64) {
	tag = r.next + 1
	for int(tag/chunkTags-(r.first+1)/chunkTags) >= len(r.chunks) {
		r.makeRoom()
	}
	if c := r.chunk(tag); *c == nil {
		if *c, r.spare = r.spare, nil; *c == nil {
			*c = new(chunk)
		}
	}
	r.next = tag
	*r.slot(tag) = m
	r.count++
	return tag
}

// skip gives out a tag for a delivery that needs no settlement.
func (r *ring) skip() (tag uint64) {
	if r.first == r.next {
		r.next++
		r.pass()
		return r.next
	}
	r.add(delivery{})
	r.count--
	return r.next
}

// chunk is where the chunk with a tag is.
func (r *ring) chunk(tag uint64) **chunk {
	return &r.chunks[tag/chunkTags&uint64(len(r.chunks)-1)]
}

func (r *ring) slot(tag uint64) *delivery { return &(*r.chunk(tag))[tag%chunkTags] }

// makeRoom makes room for a chunk: in a larger ring, or by moving the few deliveries of a large ring's first chunk to old.
func (r *ring) makeRoom() {
	if r.tags() >= ringLarge && (r.count-len(r.old))*ringSparse < r.tags() {
		r.moveToOld()
		return
	}
	was := *r
	r.chunks = make([]*chunk, max(1, 2*len(r.chunks)))
	for tag := r.first + 1; len(was.chunks) > 0 && tag/chunkTags <= r.next/chunkTags; tag += chunkTags {
		*r.chunk(tag) = *was.chunk(tag)
	}
}

// moveToOld moves what is left in the first chunk.
func (r *ring) moveToOld() {
	if r.old == nil {
		r.old = map[uint64]delivery{}
	}
	for n := (r.first + 1) / chunkTags; r.first < r.next && (r.first+1)/chunkTags == n; r.pass() {
		if s := r.slot(r.first + 1); s.queue != nil {
			r.old[r.first+1] = *s
			*s = delivery{}
		}
	}
	r.trim()
}

// pass moves first one tag on. A large ring gives back a chunk that has been passed.
func (r *ring) pass() {
	r.first++
	if (r.first+1)%chunkTags == 0 && r.tags() > ringLarge {
		c := r.chunk(r.first)
		*c, r.spare = nil, *c
	}
}

// take removes and returns the delivery with a tag, or returns false if there is none.
func (r *ring) take(tag uint64) (m delivery, ok bool) {
	if tag <= r.first {
		if m, ok = r.old[tag]; ok {
			delete(r.old, tag)
			r.count--
		}
		return m, ok
	}
	if tag > r.next {
		return m, false
	}
	s := r.slot(tag)
	if s.queue == nil {
		return m, false
	}
	m, s.queue, s.consumer, s.seq = *s, nil, nil, 0
	r.count--
	r.trim()
	return m, true
}

// takeSome removes the deliveries with the tags first to last, with a consumer only those of it, and appends them to out, in
// order. It looks at most tags of the ring, and returns where to go on.
func (r *ring) takeSome(first, last uint64, of *Consumer, most int, out []delivery) (_ []delivery, next uint64) {
	if first <= r.first && len(r.old) > 0 {
		var tags []uint64
		for t, m := range r.old {
			if t >= first && t <= last && (of == nil || m.consumer == of) {
				tags = append(tags, t)
			}
		}
		slices.Sort(tags)
		for _, t := range tags {
			out = append(out, r.old[t])
			delete(r.old, t)
			r.count--
		}
	}
	next = max(first, r.first+1)
	for end := min(last+1, r.next+1, next+uint64(most)); next < end; next++ {
		if s := r.slot(next); s.queue != nil && (of == nil || s.consumer == of) {
			out = append(out, *s)
			*s = delivery{}
			r.count--
		}
	}
	r.trim()
	return out, next
}

// tagsUpTo lists the tags of the deliveries up to a tag, in order, and of very many the first most. 0 means all. A tag that
// was not given out yet lists none.
func (r *ring) tagsUpTo(tag uint64, most int) (tags []uint64) {
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
	for t := r.first + 1; t <= tag && len(tags) < most; t++ {
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
		if m := r.slot(t); m.seq == seq && m.queue != nil && m.queue.ID() == id {
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
		r.pass()
	}
	if r.first == r.next && r.tags() > ringLarge {
		r.chunks, r.spare = nil, nil
	}
}
