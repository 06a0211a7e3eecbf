package deliveries

import (
	"iter"

	"github.com/tidwall/btree"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Unacked is one delivery that the client has not settled.
type Unacked struct {
	Queue    *broker.Queue    // nil: settled
	Seq      queue.Seq        // 0: its lock lapsed, and it was requeued
	Consumer *Consumer        // nil: basic.get
	At       deadline.Instant // when it was delivered, on the broker's clock
	locked   bool             // it was delivered with a lock
}

// brokers returns the broker's part of the consumer; nil for basic.get.
func (m *Unacked) brokers() *broker.Consumer {
	if m.Consumer == nil {
		return nil
	}
	return &m.Consumer.Consumer
}

// ring holds a channel's deliveries by delivery tag. It is a ring of chunks, since tags ascend by one and are mostly settled
// in order, and there may be millions: none is copied when the ring grows. The few deliveries that are left far behind
// move to old, so that one message held for a long time does not make the ring as long as everything delivered since.
// The zero value is empty, and its first tag is 1. Guarded by Deliveries.mu.
type ring struct {
	chunks []*chunk                    // length a power of two, or nil. Those of the tags behind first up to next are there
	spare  *chunk                      // nil, or an empty one
	first  uint64                      // all tags up to it are settled or in old
	next   uint64                      // the last tag given out
	count  int                         // not settled
	old    btree.Map[uint64, *Unacked] // in order, so that a step takes some of very many
	locked map[lockKey]uint64          // tags of what has a lock: locks of several queues, and renewed ones, lapse in any order
}

// lockKey is the message of a delivery that has a lock.
type lockKey struct {
	queue uint64 // its incarnation
	seq   queue.Seq
}

func (m *Unacked) lockKey() lockKey { return lockKey{m.Queue.ID, m.Seq} }

const chunkTags = 32

// chunk has the deliveries of chunkTags tags. The first one's tag is a multiple of that.
type chunk [chunkTags]Unacked

const (
	// ringLarge is how many tags a ring has from which on it is thinned out and gives chunks back. A usual prefetch of 1,000 takes
	// half of that, and all its chunks stay.
	ringLarge = 2048
	// ringSparse: if only one tag in ringSparse of a large ring is in use, the ring does not grow.
	ringSparse = 8
)

func (r *ring) tags() int { return len(r.chunks) * chunkTags }

// add gives out the next tag.
func (r *ring) add(m Unacked) (tag uint64) {
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
	r.noteLock(tag, &m)
	return tag
}

func (r *ring) noteLock(tag uint64, m *Unacked) {
	if !m.locked || m.Seq == 0 {
		return
	}
	if r.locked == nil {
		r.locked = map[lockKey]uint64{}
	}
	r.locked[m.lockKey()] = tag
}

func (r *ring) forgetLock(m *Unacked) {
	if m.locked && m.Seq != 0 {
		delete(r.locked, m.lockKey())
	}
}

// skip gives out a tag for a delivery that needs no settlement.
func (r *ring) skip() (tag uint64) {
	if r.first == r.next {
		r.next++
		r.pass()
		return r.next
	}
	r.add(Unacked{})
	r.count--
	return r.next
}

// chunk is where the chunk with a tag is.
func (r *ring) chunk(tag uint64) **chunk {
	return &r.chunks[tag/chunkTags&uint64(len(r.chunks)-1)]
}

func (r *ring) slot(tag uint64) *Unacked { return &(*r.chunk(tag))[tag%chunkTags] }

// makeRoom makes room for a chunk: in a larger ring, or by moving the few deliveries of a large ring's first chunk to old.
func (r *ring) makeRoom() {
	if r.tags() >= ringLarge && (r.count-r.old.Len())*ringSparse < r.tags() {
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
	for n := (r.first + 1) / chunkTags; r.first < r.next && (r.first+1)/chunkTags == n; r.pass() {
		if s := r.slot(r.first + 1); s.Queue != nil {
			m := *s
			r.old.Set(r.first+1, &m)
			*s = Unacked{}
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
func (r *ring) take(tag uint64) (m Unacked, ok bool) {
	if tag <= r.first {
		old, ok := r.old.Delete(tag)
		if ok {
			m = *old
			r.count--
			r.forgetLock(&m)
		}
		return m, ok
	}
	if tag > r.next {
		return m, false
	}
	s := r.slot(tag)
	if s.Queue == nil {
		return m, false
	}
	m, s.Queue, s.Consumer, s.Seq = *s, nil, nil, 0
	r.count--
	r.forgetLock(&m)
	r.trim()
	return m, true
}

// from is all tags from one on that are not settled, in order, and some of those that are: they have no queue.
func (r *ring) from(tag uint64) iter.Seq2[uint64, *Unacked] {
	return func(yield func(uint64, *Unacked) bool) {
		more := true
		r.old.Ascend(tag, func(t uint64, m *Unacked) bool {
			more = yield(t, m)
			return more
		})
		for t := max(tag, r.first+1); more && t <= r.next; t++ {
			more = yield(t, r.slot(t))
		}
	}
}

// takeSome removes the deliveries with the tags first to last, with a consumer only those of it, and appends them to out, in
// order. It looks at most tags, and returns where to go on.
func (r *ring) takeSome(first, last uint64, of *Consumer, most int, out []Unacked) (_ []Unacked, next uint64) {
	next = last + 1
	var old []uint64
	for t, m := range r.from(first) {
		if t > last || most == 0 {
			next = t
			break
		}
		most--
		if m.Queue != nil && (of == nil || m.Consumer == of) {
			out = append(out, *m)
			r.forgetLock(m)
			*m = Unacked{}
			r.count--
			if t <= r.first {
				old = append(old, t)
			}
		}
	}
	for _, t := range old {
		r.old.Delete(t)
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
	for t, m := range r.from(1) {
		if t > tag || len(tags) == most {
			break
		}
		if m.Queue != nil {
			tags = append(tags, t)
		}
	}
	return tags
}

// lapse marks the delivery of a message as lost, and returns its tag, or false if there is none.
func (r *ring) lapse(key lockKey) (tag uint64, ok bool) {
	if tag, ok = r.locked[key]; !ok {
		return 0, false
	}
	delete(r.locked, key)
	m, old := r.old.Get(tag)
	if !old {
		m = r.slot(tag)
	}
	m.Seq = 0
	return tag, true
}

// putBack restores a delivery under the tag with which take returned it.
func (r *ring) putBack(tag uint64, m Unacked) {
	r.count++
	r.noteLock(tag, &m)
	if tag > r.first {
		*r.slot(tag) = m
	} else {
		r.old.Set(tag, &m)
	}
}

// trim moves first past what is settled, and releases a large empty ring.
func (r *ring) trim() {
	for r.first < r.next && r.slot(r.first+1).Queue == nil {
		r.pass()
	}
	if r.first == r.next && r.tags() > ringLarge {
		if r.chunks, r.spare = nil, nil; len(r.locked) == 0 { // what is old may be locked
			r.locked = nil
		}
	}
}
