package broker

import (
	"sync"

	"curfew/broker/queue"
	"curfew/broker/store"
)

// step is the scratch of one call into the broker: what the queues it visits
// give back under their locks, and what is left to do after unlock. Steps are
// pooled; none outlives its call.
type step struct {
	b        *Broker
	now      int64 // Unix µs, rounded down: deadlines up to it have passed. Read under the lock
	stamp    int64 // Unix µs, rounded up: times to live count from it. Likewise
	fx       queue.Effects
	events   []DeadlineEvent
	entered  []store.Enqueue
	left     []store.Settle
	amended  []store.Amend
	instant  []queue.Seq // TTL 0: published and not yet judged
	refused  []int       // publishes refused by overflow, by their number
	dropping bool        // what expires is not dead-lettered
	hurried  bool        // the forwarder is to move all letters
	whole    bool        // a transaction: entered and left gather, to be journaled as one
	paced    bool        // its publisher can be asked to wait (flow), and
	tries    bool        // even where it may not help
	crowded  []*Queue    // that its publisher is to wait for
	source   Source
	props    []byte // scratch of the delivery being made
	headers  []byte // likewise, where the queue shows its receivers more (show)
	text     []byte // likewise
	shown    []byte // likewise

	sources  []*Queue // with letters that the step has posted
	posted   int64    // letters, under the lock that is held
	turns    turn
	expiries expiries
}

// Effects of a million-message purge must not stay in the pool for ever.
const stepKeep = 1 << 14

var steps = sync.Pool{New: func() any { return new(step) }}

// step takes a step from the pool.
func (b *Broker) step() *step {
	s := steps.Get().(*step)
	s.b = b
	return s
}

// lock takes the queue's lock for a step, and reads the clock: not before, since
// the lock may have been waited for.
func (q *Queue) lock(s *step) {
	q.mu.Lock()
	s.readClock()
	q.usedAt = s.now
}

func (s *step) readClock() { s.now, s.stamp = s.b.clock.read() }

// hurry is step for those whom others wait for: they leave all letters to the forwarder.
func (b *Broker) hurry() *step {
	s := b.step()
	s.hurried = true
	return s
}

// done sees to the letters the step has posted, then gives the step back. No lock may be
// held.
func (s *step) done() {
	if len(s.sources) > 0 {
		s.b.forwarder.first(s)
	}
	if len(s.expiries.records) > 0 {
		s.report()
	}
	s.recycle()
}

func (s *step) recycle() {
	largest := max(cap(s.fx.Settled), cap(s.events), cap(s.entered), cap(s.left), cap(s.amended), cap(s.sources), cap(s.turns.targets.list), cap(s.expiries.records))
	if largest > stepKeep {
		return
	}
	s.refused = s.refused[:0]
	s.b, s.source, s.hurried = nil, Source{}, false
	s.turns.rest()
	clear(s.crowded)
	s.crowded, s.paced, s.tries = s.crowded[:0], false, false
	steps.Put(s)
}
