package queue

import "curfew/broker/deadline"

// entries are the messages of a queue by their identity, in their order. It finds them, shows them and keeps notes about them; Queue
// decides when one becomes ready, unacked or gone.
type entries struct {
	byPriority []priorityEntries
	ready      [4]uint64 // marks the priorities that have a ready message
	removed    *removed  // not swept yet
	spares     spares
}

// Find describes the message s and how many of its deliveries failed; ok is false
// if it is gone.
func (q *entries) Find(s Seq) (m Message, deliveries uint16, ok bool) {
	at, ok := q.find(s)
	if !ok {
		return Message{}, 0, false
	}
	return at.entry().message(), at.entry().deliveries, true
}

// Tails returns the last identity that was given in each priority; 0: none.
func (q *entries) Tails() []Seq {
	tails := make([]Seq, len(q.byPriority))
	for p := range tails {
		if last := q.byPriority[p].next - 1; last != 0 {
			tails[p] = makeSeq(uint8(p), last)
		}
	}
	return tails
}

// Track marks the message s, if it is still queued with this deadline: its Settled will say
// Tracked, however it leaves. False: it is gone.
func (q *entries) Track(s Seq, deadline deadline.Instant) bool {
	at, ok := q.find(s)
	if !ok || at.entry().expiresAt != deadline {
		return false
	}
	at.entry().flags |= tracked
	return true
}

// Relocate notes that the store keeps the message s at another position. False:
// it is gone, or is not at old.
func (q *entries) Relocate(s Seq, old, moved uint64) bool {
	at, ok := q.find(s)
	if !ok || at.entry().pos != old {
		return false
	}
	at.entry().pos = moved
	return true
}

// find returns ok false if s is gone, was never given or has a priority the
// queue does not have.
func (q *entries) find(s Seq) (place, bool) {
	p := s.Priority()
	if int(p) >= len(q.byPriority) {
		return place{}, false
	}
	at, ok := q.byPriority[p].find(s.number())
	if !ok && q.removed != nil {
		return q.findRemoved(s)
	}
	return at, ok
}

// putBack moves an unacked message that Purge has left behind to its place in the queue.
func (q *entries) putBack(s Seq, e *entry) place {
	at := q.byPriority[s.Priority()].makePlace(s.number(), &q.spares)
	*at.entry() = *e
	at.chunk.live++
	e.state = gone
	return at
}

// findRemoved finds an unacked message that Purge has left behind, and puts it back.
func (q *entries) findRemoved(s Seq) (place, bool) {
	old, ok := q.removed.byPriority[s.Priority()].find(s.number())
	if !ok || q.removed.all || old.entry().state != Unacked {
		return place{}, false
	}
	old.chunk.live--
	return q.putBack(s, old.entry()), true
}
