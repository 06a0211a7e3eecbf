package broker

import (
	"sync"

	"curfew/broker/queue"
	"curfew/broker/store"
)

// letter is a message that has left its queue and is on its way elsewhere: a dead letter
// to the queue's dead-letter exchange, or a delayed message that is due to the exchange it
// was published to. Until it is there its queue keeps its reference to the store, and
// in the journal it is in its queue still.
type letter struct {
	settled queue.Settled
	set     *settings // of its queue when it left
	at      int64     // Unix µs: when it left
	path    Path      // of an expiry
	queued  bool      // it stood in its queue; else a full queue refused it
	unsaved bool      // its new place is in memory only: the journal keeps the old one

	// Of a queue that dead-letters at least once:
	tried bool     // before, and not every target took it
	done  []uint64 // incarnations of the queues that have it
}

// waits says whether the letter may only leave its source when all targets take it.
func (l *letter) waits(q *Queue) bool { return l.set.atLeastOnce && l.queued && q.delays == nil }

// letterLine holds the letters of a queue in the order in which they left it. A turn
// (turn.go) moves those at its front. Guarded by the queue's mu.
type letterLine struct {
	chunks [][]letter // all but the last of chunkLetters
	head   int        // of the first chunk: those before have left
	n      int
	moving int       // letters at the front that a turn is at; 0: no turn is
	begun  *crossing // the first letter, if a turn has given it to some of its targets
	passed uint64    // letters that have left the line: the number of the first

	// index finds letters by Seq for compaction. It is made when first asked for, and
	// knows the letters with numbers below indexed.
	index   map[queue.Seq]uint64
	indexed uint64
}

// chunkLetters is how many letters are stored side by side: a long line grows without being
// copied.
const chunkLetters = 128

// fullChunks are those that no line uses.
var fullChunks = sync.Pool{New: func() any { return new([chunkLetters]letter) }}

func (l *letterLine) len() int { return l.n }

// add puts a letter at the end.
func (l *letterLine) add(x *letter) {
	last := len(l.chunks) - 1
	switch {
	case last < 0:
		l.chunks = append(l.chunks, make([]letter, 0, 1))
		last++
	case len(l.chunks[last]) == chunkLetters:
		l.chunks = append(l.chunks, fullChunks.Get().(*[chunkLetters]letter)[:0])
		last++
	case len(l.chunks[last]) == cap(l.chunks[last]) && cap(l.chunks[last]) >= chunkLetters/8: // it will be a long line
		l.chunks[last] = append(fullChunks.Get().(*[chunkLetters]letter)[:0], l.chunks[last]...)
	}
	l.chunks[last] = append(l.chunks[last], *x)
	l.n++
}

// pass takes n letters off the front.
func (l *letterLine) pass(n int) {
	l.n -= n
	l.passed += uint64(n)
	l.head += n
	for len(l.chunks) > 0 && (l.n == 0 || l.head >= chunkLetters) {
		if c := l.chunks[0]; cap(c) == chunkLetters {
			clear(c)
			fullChunks.Put((*[chunkLetters]letter)(c[:chunkLetters]))
		}
		l.chunks[0] = nil
		l.chunks, l.head = l.chunks[1:], l.head-chunkLetters
	}
	if l.n == 0 {
		l.chunks, l.head = nil, 0
	}
	if len(l.index) > 2*l.n+chunkLetters || l.n == 0 { // it knows more that have left than are there
		l.index = nil
	}
}

// relocate notes that the store keeps the message of a waiting letter at another
// position. One that a turn is at, or has begun, stays where it is.
func (l *letterLine) relocate(seq queue.Seq, old, moved uint64) (store.Terms, bool) {
	if l.len() == 0 {
		return store.Terms{}, false
	}
	if l.index == nil {
		l.index, l.indexed = map[queue.Seq]uint64{}, l.passed
	}
	end := l.passed + uint64(l.len())
	for n := max(l.indexed, l.passed); n < end; n++ {
		if x := l.at(n); x.queued {
			l.index[x.settled.Seq] = n
		}
	}
	l.indexed = end
	n, ok := l.index[seq]
	if !ok || n < l.passed+uint64(l.moving) || l.begun != nil && n == l.passed {
		return store.Terms{}, false
	}
	x := l.at(n)
	if x.settled.Pos != old {
		return store.Terms{}, false
	}
	x.settled.Pos = moved
	return x.terms(), true
}

// at is the letter of that number, which is in line.
func (l *letterLine) at(number uint64) *letter {
	i := l.head + int(number-l.passed)
	return &l.chunks[i/chunkLetters][i%chunkLetters]
}

// terms are what the journal has to know of the letter besides where it stands.
func (l *letter) terms() store.Terms {
	return store.Terms{ExpiresAt: l.settled.ExpiresAt, Deliveries: l.settled.Deliveries, Flags: uint8(l.settled.Flags)}
}

// wasDelivered says whether a consumer has seen the letter's message, for the next run,
// which finds it in its queue if it has not gone on by then.
func (l *letter) wasDelivered() bool {
	return l.settled.Flags&queue.Redelivered != 0 || l.settled.Reason != queue.Expired
}

// post puts a message that has left its queue in line. Called with mu held; the step
// sees to it that it goes on.
func (s *step) post(q *Queue, l letter) {
	q.letters.add(&l)
	s.posted++
	if n := len(s.sources); n == 0 || s.sources[n-1] != q {
		s.sources = append(s.sources, q)
	}
}

// countPosted counts what was posted, before its queue's lock is given back.
func (s *step) countPosted(q *Queue) {
	if s.posted > 0 {
		q.vh.letters.Add(s.posted)
		s.b.forwarder.waiting.Add(s.posted)
		s.posted = 0
	}
}

// Letters is how many messages have left the queue and wait to be dead-lettered.
func (q *Queue) Letters() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.letters.len()
}

// delivered appends those of them that a consumer has seen.
func (l *letterLine) delivered(id uint64, runs []store.Delivered) []store.Delivered {
	for n := l.passed; n < l.passed+uint64(l.n); n++ {
		if x := l.at(n); x.queued && x.wasDelivered() {
			runs = append(runs, store.Delivered{Queue: id, First: uint64(x.settled.Seq), Count: 1})
		}
	}
	return runs
}
