package server

import (
	"curfew/broker"
	"curfew/broker/queue"
)

// held is one delivery that the client has not settled.
type held struct {
	q   *broker.Queue // nil: settled
	seq queue.Seq
	c   *consumer // nil: a get
}

// unacked holds a channel's deliveries by delivery tag: a ring, since tags
// ascend by one and are mostly settled in order. The zero value is empty and its
// first tag is 1.
type unacked struct {
	ring  []held // length a power of two, or nil
	first uint64 // tags up to it are settled
	next  uint64 // last tag given
	count int    // not settled
}

// add gives out the next tag.
func (u *unacked) add(h held) (tag uint64) {
	if int(u.next-u.first) == len(u.ring) {
		u.grow()
	}
	u.next++
	u.ring[u.next&uint64(len(u.ring)-1)] = h
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

func (u *unacked) grow() {
	ring := make([]held, max(16, 2*len(u.ring)))
	for tag := u.first + 1; tag <= u.next; tag++ {
		ring[tag&uint64(len(ring)-1)] = u.ring[tag&uint64(len(u.ring)-1)]
	}
	u.ring = ring
}

// take removes and returns the delivery of a tag; false if there is none.
func (u *unacked) take(tag uint64) (held, bool) {
	if tag <= u.first || tag > u.next {
		return held{}, false
	}
	slot := &u.ring[tag&uint64(len(u.ring)-1)]
	h := *slot
	if h.q == nil {
		return held{}, false
	}
	*slot = held{}
	u.count--
	for u.first < u.next && u.ring[(u.first+1)&uint64(len(u.ring)-1)].q == nil {
		u.first++
	}
	return h, true
}
