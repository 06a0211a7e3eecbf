package broker

import (
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
	line   []letter // from head on
	head   int
	moving int       // letters at the front that a turn is at; 0: no turn is
	begun  *crossing // the first letter, if a turn has given it to some of its targets
	passed uint64    // letters that have left the line: the number of line[head]

	// index finds letters by Seq for compaction. It is made when first asked for, and
	// knows the letters with numbers below indexed.
	index   map[queue.Seq]uint64
	indexed uint64
}

func (l *letterLine) len() int { return len(l.line) - l.head }

// linesKeep is how many letters' room an emptied line may keep.
const linesKeep = 64

// pass takes n letters off the front.
func (l *letterLine) pass(n int) {
	clear(l.line[l.head : l.head+n])
	l.head += n
	l.passed += uint64(n)
	switch {
	case l.head == len(l.line):
		if l.line, l.head, l.index = l.line[:0], 0, nil; cap(l.line) > linesKeep {
			l.line = nil
		}
	case l.head > len(l.line)/2:
		kept := copy(l.line, l.line[l.head:])
		clear(l.line[kept:])
		l.line, l.head = l.line[:kept], 0
	}
}

// relocate notes that the store keeps the message of a waiting letter at another
// position. One that a turn is at stays where it is.
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
	if !ok || n < l.passed+uint64(l.moving) {
		return store.Terms{}, false
	}
	x := l.at(n)
	if x.settled.Pos != old {
		return store.Terms{}, false
	}
	x.settled.Pos = moved
	return x.terms(), true
}

func (l *letterLine) at(number uint64) *letter { return &l.line[l.head+int(number-l.passed)] }

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
	q.letters.line = append(q.letters.line, l)
	q.vh.letters.Add(1)
	s.b.forwarder.waiting.Add(1)
	if n := len(s.sources); n == 0 || s.sources[n-1] != q {
		s.sources = append(s.sources, q)
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
	for _, x := range l.line[l.head:] {
		if x.queued && x.wasDelivered() {
			runs = append(runs, store.Delivered{Queue: id, First: uint64(x.settled.Seq), Count: 1})
		}
	}
	return runs
}
