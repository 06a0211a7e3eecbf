package queue

// AtOnce is the most messages that Take, Trim and Sweep settle in one call, give or take one chunk.
const AtOnce = 256

// removed is what Purge has taken out of a queue, or Clear out of all of them: ready and waiting messages that
// have left it, and unacked ones that have to go back, or leave with them. Sweep visits it chunk by
// chunk.
type removed struct {
	byPriority []priorityEntries
	all        bool     // unacked messages leave, too
	left       int      // priorities that Sweep has not finished, the last one first
	number     uint64   // where Sweep is in the current priority
	then       *removed // what is swept next
}

// detach takes all entries out of the queue.
func (q *Queue) detach(all bool) *removed {
	r := &removed{byPriority: q.byPriority, all: all, left: len(q.byPriority)}
	q.byPriority = make([]priorityEntries, len(r.byPriority))
	for p := range q.byPriority {
		next := r.byPriority[p].next
		q.byPriority[p] = priorityEntries{next: next, head: next}
	}
	q.ready = [4]uint64{}
	return r
}

// Purge takes every ready and every waiting message out of the queue at once and returns how many there were. They
// are settled by Sweep, which has to be called until it is done: until then Purge may not be called
// again. The time that Purge takes does not depend on the number of messages.
func (q *Queue) Purge() int {
	n := q.Len() - q.Unacked.Count
	if n > 0 {
		q.removed = q.detach(false)
		q.Ready, q.waits = Sum{}, nil
	}
	return n
}

// Clear takes every message out of the queue at once, unacked ones too, and returns them as a queue
// of their own, which settles them in Sweep. It is for a queue that is deleted: afterwards no Seq
// handed out before names a message of q.
func (q *Queue) Clear() *Queue {
	rest := *q
	*q = Queue{opts: q.opts, entries: entries{byPriority: rest.byPriority}}
	r := q.detach(true)
	if rest.removed == nil {
		rest.removed = r
	} else {
		rest.removed.then = r // the unacked messages of the first are put back in there
	}
	rest.byPriority = r.byPriority
	return &rest
}

// Sweeping reports whether Sweep has something to do. Until it is done, Each, EachBack and Sample
// leave out the unacked messages that were in the queue when Purge was called.
func (q *Queue) Sweeping() bool { return q.removed != nil }

// Sweep settles some of the messages that Purge or Clear has taken out, at most AtOnce and one
// chunk, and reports whether there are more. The unacked ones that Purge has left go back to their
// places in the queue.
func (q *Queue) Sweep(fx *Effects) (more bool) {
	for steps := 0; q.removed != nil && steps < AtOnce; {
		r := q.removed
		if r.left == 0 {
			q.removed = r.then
			continue
		}
		at, ok := r.byPriority[r.left-1].nextChunk(r.number)
		if !ok {
			r.left, r.number = r.left-1, 0
			continue
		}
		steps += q.sweepChunk(at, fx) + 1
		r.number = (at.number>>chunkBits + 1) << chunkBits
	}
	return q.removed != nil
}

// sweepChunk empties the chunk of a removed priority, and returns how many messages were in it.
func (q *Queue) sweepChunk(at place, fx *Effects) (n int) {
	r := q.removed
	for i := range at.chunk.entries {
		e := &at.chunk.entries[i]
		if e.state == gone {
			continue
		}
		n++
		s := makeSeq(uint8(r.left-1), at.number&^(chunkEntries-1)|uint64(i))
		switch {
		case e.state == Unacked && !r.all:
			q.putBack(s, e)
			continue
		case e.state == Unacked:
			q.Unacked.add(e, -1)
		case r.all && e.state == Waiting:
			q.waits.remove(s, e, true)
		case r.all:
			q.Ready.add(e, -1)
		}
		fx.Settled = append(fx.Settled, e.settled(s, Purged))
		e.state = gone
	}
	clear(at.chunk.ready[:])
	at.page.ready[slot(at.number)/64] &^= 1 << (slot(at.number) % 64)
	at.page.counts[slot(at.number)] = 0
	at.chunk.live = 0
	r.byPriority[r.left-1].dropChunk(at, &q.spares)
	return n
}

// nextChunk is the first chunk from a number on; the place has a number in it.
func (l *priorityEntries) nextChunk(number uint64) (at place, ok bool) {
	for number = max(number, l.first<<pageShift); number>>pageShift-l.first < uint64(len(l.dir)); {
		pg := l.pageOf(number)
		if pg == nil {
			number = (number>>pageShift + 1) << pageShift
			continue
		}
		if c := pg.chunks[slot(number)]; c != nil {
			return place{number, pg, c}, true
		}
		number = (number>>chunkBits + 1) << chunkBits
	}
	return place{}, false
}
