package scheduler

import (
	"slices"

	"curfew/broker/deadline"
)

// The parts of a line.
const (
	waits = iota // nothing is due, or it has had no turn since: by next
	due          // it had a turn, and more is due: by turn
	held         // see Index.Hold: by next
)

// line is of tenants, or of the queues of one, that take turns when they have something due. Every second turn is of one that has had none since it had
// nothing due, so such a one waits neither behind the many shadows of another nor for all that have more due.
type line[M member] struct {
	parts [3]deadline.Heap[M]
	until deadline.Instant // of the last turn; what is due was due by then
	turns uint64
}

type member interface{ stands() *place }

// place is where a member stands in its line.
type place struct {
	next deadline.Instant // its lowest score, or never
	turn uint64           // its last one
	part int
	at   int // in the part's heap; -1: in none
}

func (p *place) stands() *place { return p }

func newLine[M member]() *line[M] {
	l := &line[M]{}
	for i := range l.parts {
		l.parts[i].Moved = func(m M, at int) { m.stands().at = at }
		l.parts[i].Before = func(a, b M) bool { return a.stands().next < b.stands().next }
	}
	l.parts[due].Before = func(a, b M) bool { return a.stands().turn < b.stands().turn }
	return l
}

// put puts a member into a part of the line, now that next is its lowest score. waits leaves one in due that still has something due, and has one
// that was held go behind those that are: it had its turn.
func (l *line[M]) put(m M, next deadline.Instant, part int) {
	p := m.stands()
	if part == waits && p.part != waits && (next == never || next <= l.until) {
		part = due
	}
	if p.next == next && p.part == part && p.at >= 0 && part != due {
		return
	}
	if p.at >= 0 && (p.part != part || next == never) {
		l.parts[p.part].Remove(p.at)
	}
	p.next = next
	switch p.part = part; {
	case next == never:
	case p.at < 0:
		l.parts[part].Push(m)
	default:
		l.parts[part].Fix(p.at)
	}
}

// turn returns whose turn it is of those that have something due until then.
func (l *line[M]) turn(until deadline.Instant) (m M, ok bool) {
	l.until = until
	newly, more := l.parts[waits].Items, l.parts[due].Items
	isNew := len(newly) > 0 && newly[0].stands().next <= until
	switch l.turns++; {
	case isNew && (len(more) == 0 || l.turns%2 == 0):
		return newly[0], true
	case len(more) > 0:
		return more[0], true
	}
	return m, false
}

// served is put after a turn.
func (l *line[M]) served(m M, next deadline.Instant) {
	m.stands().turn = l.turns
	if next <= l.until {
		l.put(m, next, due)
	} else {
		l.put(m, next, waits)
	}
}

// back takes back that anything was due.
func (l *line[M]) back() {
	l.until = 0
	for _, m := range slices.Clone(l.parts[due].Items) {
		l.put(m, m.stands().next, waits)
	}
}

// next is the lowest score that may be claimed, or an instant by which something was due; never if there is none.
func (l *line[M]) next() deadline.Instant {
	next := never
	for _, part := range []int{waits, due} {
		if len(l.parts[part].Items) > 0 {
			next = min(next, l.parts[part].Items[0].stands().next)
		}
	}
	return next
}

// upTo calls fn with the members whose lowest score is up to an instant, which fn may lower. fn does not change the line.
func (l *line[M]) upTo(until *deadline.Instant, fn func(M)) {
	for _, m := range l.parts[due].Items {
		fn(m)
	}
	for _, part := range []int{waits, held} {
		below(l.parts[part].Items, 0, until, fn)
	}
}

func below[M member](heap []M, at int, until *deadline.Instant, fn func(M)) {
	if at < len(heap) && heap[at].stands().next <= *until {
		fn(heap[at])
		below(heap, 2*at+1, until, fn)
		below(heap, 2*at+2, until, fn)
	}
}
