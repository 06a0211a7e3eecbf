package queue

import (
	"fmt"
	"math/bits"
)

// sums are the counts that a walk over all entries must arrive at.
type sums struct {
	ready, unacked, waiting, durable                     int
	readyBytes, unackedBytes, waitingBytes, durableBytes int64
}

func (s *sums) add(e *entry) {
	if e.flags&Durable != 0 {
		s.durable++
		s.durableBytes += int64(e.bytes)
	}
	switch e.state {
	case Ready:
		s.ready++
		s.readyBytes += int64(e.bytes)
	case Waiting:
		s.waiting++
		s.waitingBytes += int64(e.bytes)
	default:
		s.unacked++
		s.unackedBytes += int64(e.bytes)
	}
}

// Check compares everything that the queue keeps besides its entries with the entries, and
// returns the first difference. It visits all of them.
func (q *Queue) Check() error {
	var found sums
	for p := range q.byPriority {
		l := &q.byPriority[p]
		if err := l.check(&found); err != nil {
			return fmt.Errorf("queue: priority %d: %w", p, err)
		}
		if marked := bitSet(q.ready[:], p); marked != (l.ready > 0) {
			return fmt.Errorf("queue: priority %d marked ready: %v, with %d ready", p, marked, l.ready)
		}
	}
	if q.removed != nil && !q.removed.all {
		q.removed.check(&found)
	}
	r, u, w := q.Ready, q.Unacked, q.Waiting()
	kept := sums{r.Count, u.Count, w.Count, r.Durable + u.Durable + w.Durable, r.Bytes, u.Bytes, w.Bytes, r.DurableBytes + u.DurableBytes + w.DurableBytes}
	if kept != found {
		return fmt.Errorf("queue: counts %+v, entries %+v", kept, found)
	}
	if w := q.waits; w != nil && w.dues.Len()-w.dues.Stale != len(w.until) {
		return fmt.Errorf("queue: %d wait, with %d entries, %d of them stale", len(w.until), w.dues.Len(), w.dues.Stale)
	}
	return q.spares.check()
}

// check adds the messages that Purge has left behind.
func (r *removed) check(found *sums) {
	for p := range r.byPriority {
		l := &r.byPriority[p]
		for at, ok := l.nextChunk(0); ok; at, ok = l.nextChunk((at.number>>chunkBits + 1) << chunkBits) {
			for i := range at.chunk.entries {
				if e := &at.chunk.entries[i]; e.state == Unacked {
					found.add(e)
				}
			}
		}
	}
}

func (l *priorityEntries) check(found *sums) error {
	if len(l.dir) > 0 && l.dir[0] == nil {
		return fmt.Errorf("directory begins with an absent page")
	}
	before := found.ready
	for i, pg := range l.dir {
		if pg == nil {
			continue
		}
		if err := l.checkPage(l.first+uint64(i), pg, found); err != nil {
			return fmt.Errorf("page %d: %w", i, err)
		}
	}
	if n := found.ready - before; n != l.ready {
		return fmt.Errorf("counts %d ready, entries %d", l.ready, n)
	}
	return nil
}

func (l *priorityEntries) checkPage(index uint64, pg *page, found *sums) error {
	used := 0
	for s, c := range pg.chunks {
		if bitSet(pg.ready[:], s) != (c != nil && c.anyReady()) {
			return fmt.Errorf("ready bit of chunk %d", s)
		}
		if n := int(pg.counts[s]); c == nil && n != 0 || c != nil && n != c.countReady() {
			return fmt.Errorf("chunk %d counted as %d ready", s, n)
		}
		if c == nil {
			continue
		}
		used++
		if err := l.checkChunk(index<<pageShift|uint64(s)<<chunkBits, c, found); err != nil {
			return fmt.Errorf("chunk %d: %w", s, err)
		}
	}
	if used != pg.used || used == 0 {
		return fmt.Errorf("counts %d chunks, has %d", pg.used, used)
	}
	return nil
}

func (l *priorityEntries) checkChunk(start uint64, c *chunk, found *sums) error {
	live := 0
	for i := range c.entries {
		e, number := &c.entries[i], start+uint64(i)
		if bitSet(c.ready[:], i) != (e.state == Ready) {
			return fmt.Errorf("ready bit of %d, which is %v", number, e.state)
		}
		if e.state == gone {
			continue
		}
		live++
		found.add(e)
		if number == 0 || number >= l.next || e.state == Ready && number < l.head {
			return fmt.Errorf("%d is %v, head %d, next %d", number, e.state, l.head, l.next)
		}
	}
	if live != c.live || live == 0 && start>>chunkBits != l.next>>chunkBits {
		return fmt.Errorf("counts %d entries, has %d", c.live, live)
	}
	return nil
}

func (c *chunk) countReady() (n int) {
	for _, w := range c.ready {
		n += bits.OnesCount64(w)
	}
	return n
}

func (sp *spares) check() error {
	if len(sp.chunks) > maxSpares {
		return fmt.Errorf("queue: %d spare chunks", len(sp.chunks))
	}
	for _, c := range sp.chunks {
		for i := range c.entries {
			if c.live != 0 || c.anyReady() || c.entries[i].state != gone {
				return fmt.Errorf("queue: spare chunk in use")
			}
		}
	}
	if pg := sp.page; pg != nil && (pg.used != 0 || pg.ready != page{}.ready || pg.counts != page{}.counts || pg.chunks != page{}.chunks) {
		return fmt.Errorf("queue: spare page in use")
	}
	return nil
}

func bitSet(words []uint64, i int) bool { return words[i/64]>>(i%64)&1 != 0 }

func (c *chunk) anyReady() bool { return c.ready != [chunkEntries / 64]uint64{} }
