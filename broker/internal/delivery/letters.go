package delivery

import (
	"slices"
	"sync"
	"sync/atomic"

	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Letter is a message that has left its queue and is on its way elsewhere: a dead letter goes to
// the queue's dead-letter exchange, a delayed message that is due to the exchange it was
// published to. Until it arrives, its queue keeps its reference to the store, and the journal
// still has it in its queue.
type Letter struct {
	Settled  queue.Settled
	Settings *policy.Settings // of its queue when it left
	At       deadline.Instant // when it left
	Path     deadline.Path    // of an expiry
	Why      *Rejection       // of a rejection by a consumer that gave a reason; nil: it gave none
	Queued   bool             // it was in its queue; false: a full queue refused it
	Unsaved  bool             // its new place is in memory only: the journal keeps the old one

	// Of a queue that dead-letters at least once:
	Tried bool     // it was tried before, and not every target took it
	Done  []uint64 // incarnations of the queues that have it already
}

// Waits reports whether the letter may leave its queue only when all targets take it.
func (l *Letter) Waits() bool { return l.Settings.AtLeastOnce && l.Queued }

// Letters is the line of letters of one source, a queue or the delayed messages of a
// virtual host, in the order in which they left it. Letters are forwarded from its front, in one
// turn at a time. It is guarded by the lock of its source.
type Letters struct {
	Origin
	Retained *Retained
	Notices  atomic.Uint32 // bits: the warnings already logged about the source, so that each is logged once

	mu     *sync.Mutex // of the source
	line   letterLine
	after  *[]afterLetter // nil: there are none, as nearly always
	moving uint16         // letters at the front that a turn is moving; 0: there is no turn
	begun  bool           // a turn has given the first letter to some of its targets
}

// afterLetter is a call for when the letters with numbers below upTo have left the line.
type afterLetter struct {
	upTo uint64
	fn   func()
}

// Init must be called before any other method.
func (l *Letters) Init(o Origin, mu *sync.Mutex) { l.Origin, l.mu = o, mu }

// Origin is where the letters of a line come from.
type Origin struct {
	*Identity        // of the source
	Delayed   bool   // they are delayed messages that are due; false: dead letters of a queue
	Lines     *Lines // of the virtual host
}

// Lines are the lines of letters of one virtual host, with the functions that forward them.
type Lines struct {
	Waiting atomic.Int64 // letters in them

	// First takes a first turn for a transition that has posted letters in them, and leaves the
	// rest to the forwarder; Later leaves all letters of some lines to it. Both are called with
	// no lock held.
	First func(*Transition)
	Later func(...*Letters)
}

// PostLocked puts a letter in line. The transition makes sure that it is forwarded.
func (l *Letters) PostLocked(s *Transition, x *Letter) {
	l.line.add(x)
	s.posted++
	if n := len(s.Sources); n == 0 || s.Sources[n-1] != l {
		s.Sources = append(s.Sources, l)
	}
}

// Count is how many messages have left their queue and are on their way.
func (l *Letters) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line.n
}

// BeginTurn gives a turn copies of the first letters, in order and no more than most (< 65,536). It first
// calls begin with their number. 0: there are none, or another turn is moving them. begun: an
// earlier turn has given the first letter to some of its targets.
func (l *Letters) BeginTurn(most int, begin func(n int), copy func(i int, x *Letter)) (n int, begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moving > 0 || l.line.n == 0 {
		return 0, false
	}
	n = min(most, l.line.n)
	l.moving = uint16(n)
	begin(n)
	for i := range n {
		copy(i, l.line.at(l.line.passed+uint64(i)))
	}
	return n, l.begun
}

// EndTurn removes letters from the front, as many as are done. begun: the next one was given to
// some of its targets. more: there are others in line.
func (l *Letters) EndTurn(done int, begun bool) (more bool) {
	l.mu.Lock()
	l.begun, l.moving = begun, 0
	l.line.remove(done)
	more = l.line.n > 0
	var calls []afterLetter
	if l.after != nil {
		due := slices.IndexFunc(*l.after, func(a afterLetter) bool { return a.upTo > l.line.passed })
		if calls = *l.after; due < 0 {
			l.after = nil
		} else {
			calls, *l.after = calls[:due], calls[due:]
		}
	}
	l.mu.Unlock()
	for _, a := range calls {
		a.fn()
	}
	return more
}

// After calls fn once all letters that are in line have left it: at once if there are none, or else at
// the end of the turn that moves the last of them. Then the journal says where they went, but of those
// that are retained. fn must not block.
func (l *Letters) After(fn func()) {
	l.mu.Lock()
	waits := l.line.n > 0
	if waits {
		if l.after == nil {
			l.after = new([]afterLetter)
		}
		*l.after = append(*l.after, afterLetter{l.line.end(), fn})
	}
	l.mu.Unlock()
	if !waits {
		fn()
	}
}

// EachLocked calls fn with the letters from a number on, in order, until it returns false.
func (l *Letters) EachLocked(from uint64, fn func(number uint64, x *Letter) bool) {
	for number, end := max(from, l.line.passed), l.line.end(); number < end; number++ {
		if !fn(number, l.line.at(number)) {
			return
		}
	}
}

// RelocateLocked notes that the store keeps the message of a letter, in line or retained, at another
// position. A letter that a turn is moving, or has begun to move, stays where it is.
func (l *Letters) RelocateLocked(seq queue.Seq, old, moved uint64) (store.Terms, bool) {
	fixed := int(l.moving)
	if l.begun {
		fixed = max(fixed, 1)
	}
	terms, ok := l.line.relocate(fixed, seq, old, moved)
	if !ok && l.Retained.kept != nil {
		return l.Retained.kept.line.relocate(0, seq, old, moved)
	}
	return terms, ok
}

// letterLine holds letters in order. Each has a number; they are added with ascending
// numbers and leave in that order.
type letterLine struct {
	chunks [][]Letter // each but the last has chunkLetters
	head   int        // index in the first chunk: those before it have left
	n      int
	passed uint64 // letters that have left the line: the number of the first

	// index finds letters by Seq for compaction. It is made when first needed, and has the
	// letters with numbers below indexed.
	index   map[queue.Seq]uint64
	indexed uint64
}

// chunkLetters is how many letters are stored in one chunk: a long line grows without being
// copied.
const chunkLetters = 128

// fullChunks is the pool of chunks that no line uses.
var fullChunks = sync.Pool{New: func() any { return new([chunkLetters]Letter) }}

// end is the number that the next letter gets.
func (l *letterLine) end() uint64 { return l.passed + uint64(l.n) }

// add puts a letter at the end.
func (l *letterLine) add(x *Letter) {
	last := len(l.chunks) - 1
	switch {
	case last < 0:
		l.chunks = append(l.chunks, make([]Letter, 0, 1))
		last++
	case len(l.chunks[last]) == chunkLetters:
		l.chunks = append(l.chunks, fullChunks.Get().(*[chunkLetters]Letter)[:0])
		last++
	case len(l.chunks[last]) == cap(l.chunks[last]) && cap(l.chunks[last]) >= chunkLetters/8: // it will be a long line
		l.chunks[last] = append(fullChunks.Get().(*[chunkLetters]Letter)[:0], l.chunks[last]...)
	}
	l.chunks[last] = append(l.chunks[last], *x)
	l.n++
}

// remove takes n letters off the front.
func (l *letterLine) remove(n int) {
	l.n -= n
	l.passed += uint64(n)
	l.head += n
	for len(l.chunks) > 0 && (l.n == 0 || l.head >= chunkLetters) {
		if c := l.chunks[0]; cap(c) == chunkLetters {
			clear(c)
			fullChunks.Put((*[chunkLetters]Letter)(c[:chunkLetters]))
		}
		l.chunks[0] = nil
		l.chunks, l.head = l.chunks[1:], l.head-chunkLetters
	}
	if l.n == 0 {
		l.chunks, l.head = nil, 0
	}
	if len(l.index) > 2*l.n+chunkLetters || l.n == 0 { // it has more letters that have left than letters in line
		l.index = nil
	}
}

// at is the letter with that number, which must be in line.
func (l *letterLine) at(number uint64) *Letter {
	i := l.head + int(number-l.passed)
	return &l.chunks[i/chunkLetters][i%chunkLetters]
}

// find returns the number of the letter that was in its queue at seq. It may have left the line:
// then the number is below passed. Each call adds some letters to the index, so that none takes
// long; until all are in it, a letter may not be found.
func (l *letterLine) find(seq queue.Seq) (number uint64, ok bool) {
	if l.n == 0 {
		return 0, false
	}
	if l.index == nil {
		l.index, l.indexed = map[queue.Seq]uint64{}, l.passed
	}
	l.indexed = max(l.indexed, l.passed)
	for end := min(l.indexed+queue.AtOnce, l.end()); l.indexed < end; l.indexed++ {
		if x := l.at(l.indexed); x.Queued {
			l.index[x.Settled.Seq] = l.indexed
		}
	}
	number, ok = l.index[seq]
	return number, ok
}

// relocate notes that the store keeps the message of a letter at another position. The first ones
// are fixed where they are.
func (l *letterLine) relocate(fixed int, seq queue.Seq, old, moved uint64) (store.Terms, bool) {
	number, ok := l.find(seq)
	if !ok || number < l.passed+uint64(fixed) {
		return store.Terms{}, false
	}
	x := l.at(number)
	if x.Settled.Pos != old {
		return store.Terms{}, false
	}
	x.Settled.Pos = moved
	return store.Terms{ExpiresAt: x.Settled.ExpiresAt, Deliveries: x.Settled.Deliveries, Flags: uint8(x.Settled.Flags)}, true
}

// appendDelivered appends the letters that a consumer has seen: in the next run they are back in
// their queue, and it has to be known of them.
func (l *letterLine) appendDelivered(id uint64, runs []store.Delivered) []store.Delivered {
	for number := l.passed; number < l.end(); number++ {
		x := l.at(number)
		if x.Queued && (x.Settled.Flags&queue.Redelivered != 0 || x.Settled.Reason != queue.Expired) {
			runs = append(runs, store.Delivered{Queue: id, First: uint64(x.Settled.Seq), Count: 1})
		}
	}
	return runs
}
