package scheduler

import (
	"slices"

	"curfew/broker/deadline"
)

// queue has the shadows of one queue, each in one of two places: waiting, where its score is its deadline, or moved, where the score may be any.
type queue struct {
	place
	id      uint64
	of      *tenant
	held    bool // see Index.Hold
	waiting sorted
	moved   deadline.Heap[Later] // by score; moves.places has where
}

// moves are the places of shadows in the heaps of their queues.
type moves struct {
	places map[deadline.Ref]int32
	most   int // that there were
}

const (
	// movedKeep is how many moved shadows there may be without that memory is ever given back.
	movedKeep = 1 << 12
	// ownKeep is the same for one queue: what a few claims take, so that firing does not allocate.
	ownKeep = 4 * step
	// movedShrink and movedFew: memory is given back when less than one part in movedShrink of it is used, by no more than movedFew. Consumers may have
	// held very many past their deadlines, and few moves cost little.
	movedShrink, movedFew = 64, 1 << 10
)

// note is deadline.Heap.Moved.
func (m *moves) note(l Later, at int) {
	if at < 0 {
		delete(m.places, l.Ref)
		return
	}
	m.places[l.Ref] = int32(at)
	m.most = max(m.most, len(m.places))
}

// shrink gives back what a burst needed, of a queue and of all.
func (m *moves) shrink(q *queue) {
	if all := &q.moved.Items; cap(*all) > ownKeep && len(*all) < min(cap(*all)/movedShrink, movedFew) {
		*all = slices.Clone(*all)
	}
	if m.most > movedKeep && len(m.places) < min(m.most/movedShrink, movedFew) {
		places := make(map[deadline.Ref]int32, len(m.places))
		for r, at := range m.places {
			places[r] = at
		}
		m.places, m.most = places, len(places)
	}
}

func (q *queue) len() int { return q.waiting.length + len(q.moved.Items) }

// lowest is the lowest score; never if there is none.
func (q *queue) lowest() deadline.Instant {
	if len(q.moved.Items) > 0 {
		return min(q.waiting.first(), q.moved.Items[0].At)
	}
	return q.waiting.first()
}

func (q *queue) ref(e entry) deadline.Ref {
	return deadline.Ref{Deadline: e.at, Queue: q.id, Seq: e.seq}
}

// unmove takes a shadow out of those that were moved; false if it is not there.
func (q *queue) unmove(m *moves, r deadline.Ref) bool {
	if len(q.moved.Items) == 0 {
		return false
	}
	at, ok := m.places[r]
	if ok {
		q.moved.Remove(int(at))
	}
	return ok
}

func (q *queue) add(m *moves, all []deadline.Ref) {
	for _, r := range all {
		q.unmove(m, r)
		q.waiting.insert(entry{r.Deadline, r.Seq})
	}
}

func (q *queue) remove(m *moves, all []deadline.Ref) {
	if len(q.moved.Items) == 0 {
		q.waiting.remove(all)
		return
	}
	for i, r := range slices.Backward(all) { // what was claimed together is at the end of the heap, in order
		if !q.unmove(m, r) {
			q.waiting.remove(all[i : i+1])
		}
	}
	m.shrink(q)
}

// putOff gives shadows other scores, if they are there.
func (q *queue) putOff(m *moves, all []Later) {
	for _, l := range all {
		before := q.waiting.length
		if at, ok := m.places[l.Ref]; ok {
			q.moved.Items[at].At = l.At
			q.moved.Fix(int(at))
		} else if q.waiting.remove([]deadline.Ref{l.Ref}); q.waiting.length < before {
			q.moved.Push(l)
		}
	}
}

// claim leases at most max shadows whose score is <= until, in order of score, deadline and seq.
func (q *queue) claim(until deadline.Instant, max int, leaseUntil deadline.Instant, out []deadline.Ref) []deadline.Ref {
	from, most := len(out), len(out)+max
	for len(out) < most && q.lowest() <= until {
		n := most - len(out)
		if len(q.moved.Items) > 0 && q.moved.Items[0].At <= until {
			if first := q.moved.Items[0]; q.waiting.length == 0 || first.before(Later{q.ref(q.waiting.pages[0].entries[0]), q.waiting.first()}) {
				out = append(out, q.moved.Remove(0).Ref)
				continue
			}
			n = 1
		}
		p := &q.waiting.pages[0]
		n = min(n, p.due(until))
		for _, e := range p.entries[:n] {
			out = append(out, q.ref(e))
		}
		q.waiting.cut(0, 0, n)
	}
	for _, r := range out[from:] {
		q.moved.Push(Later{r, leaseUntil})
	}
	return out
}
