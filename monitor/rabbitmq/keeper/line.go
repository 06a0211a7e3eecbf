package keeper

import (
	"cmp"
	"slices"
	"time"

	"curfew/broker/deadline"
)

// stretch is what one channel holds: neighbours in the queue, in order of tags. At most one stretch has a consumer.
//
//	consume    opened        cancel        ended
//	──────► opening ──► live ──────► cancelling ──► sealed ──► giveBackAll: returning ──► gone
type stretch struct {
	id          uint32
	key         uint64 // its place among the stretches, and in the queue
	phase       phase
	held        int
	first, last uint32           // entries, by tag
	probeAt     deadline.Instant // when it is given back to see whether messages of unknown age have expired; never
	strangers   []uint64
	holds       []holding // by consumption
}

// holding is what is held of the messages that one consumer of a stretch has taken. A quorum queue counts the consumer while it holds any.
type holding struct {
	count int
	asked int  // the consumer's prefetch
	stays bool // the consumer was cancelled and is back, without credit
}

// putBack is a cancelled consumer that is to be put back.
type putBack struct {
	at          deadline.Instant
	stretch     uint32
	consumption int
}

type phase uint8

const (
	opening phase = iota
	live
	cancelling
	sealed
	returning
)

// line is what is held of the queue: its messages in stretches, in the order of the queue, and the consumer that takes
// more. It does nothing by itself; what it is asked for goes out as commands.
//
// Invariants: every entry is in exactly one stretch; at most one stretch has a consumer; stretches are in order of key.
type line struct {
	held      heldMessages
	stretches []*stretch // in order of key
	byID      map[uint32]*stretch
	nextID    uint32
	nextKey   uint64
	consumer  *stretch // opening, live or cancelling
	giving    *stretch // returning
	settling  *stretch // some of its messages are on their way back
	openedAt  deadline.Instant
	started   deadline.Instant // entries count the time from then
	given     *givenBack
	out       []command
	due       []uint32 // scratch

	quorum   bool               // a quorum queue counts a cancelled consumer that holds messages
	strands  bool               // Facts.strands
	putBacks []putBack          // by time
	epoch    uint32             // changes with the number of consumers that are ours
	emptied  []deadline.Instant // when cancelled consumers last came to hold nothing: a quorum queue may count them a moment longer
}

func newLine(now deadline.Instant, given *givenBack) line {
	return line{started: now, byID: map[uint32]*stretch{}, nextID: 1, nextKey: 1, given: given}
}

// do adds a command that may change the number of consumers.
func (l *line) do(cmd command) {
	l.epoch++
	l.out = append(l.out, cmd)
}

// waits reports whether an answer is on its way that decides what comes next.
func (l *line) waits() bool {
	return l.giving != nil || l.settling != nil || l.consumer != nil && l.consumer.phase != live
}

// tail is the last stretch; nil if there is none.
func (l *line) tail() *stretch {
	if len(l.stretches) == 0 {
		return nil
	}
	return l.stretches[len(l.stretches)-1]
}

// open begins to consume on a new stretch at the given place.
func (l *line) open(now deadline.Instant, key uint64, prefetch int) *stretch {
	s := &stretch{id: l.nextID, key: key, first: none, last: none, probeAt: never}
	l.nextID++
	l.byID[s.id] = s
	at, _ := slices.BinarySearchFunc(l.stretches, key, func(s *stretch, key uint64) int {
		if s.key < key {
			return -1
		}
		return 1
	})
	l.stretches = slices.Insert(l.stretches, at, s)
	l.consumeOn(now, s, prefetch)
	return s
}

// openTail begins to consume at the end of the queue.
func (l *line) openTail(now deadline.Instant, prefetch int) {
	key := l.nextKey
	l.nextKey++
	l.open(now, key, prefetch)
}

func (l *line) consumeOn(now deadline.Instant, s *stretch, prefetch int) {
	s.phase, l.consumer, l.openedAt = opening, s, now
	s.holds = append(s.holds, holding{asked: prefetch})
	l.do(command{do: consume, stretch: s.id, prefetch: prefetch})
}

// cancelConsumer ends taking. Where a cancelled consumer strands what it holds if its node goes down, it is put back without credit:
// in the same moment if it is full. Otherwise messages may be on their way to it, and RabbitMQ would deliver all again that it holds.
func (l *line) cancelConsumer() {
	s := l.consumer
	s.phase = cancelling
	h := &s.holds[len(s.holds)-1]
	do := cancel
	if l.strands && h.count == h.asked {
		h.stays, do = true, replace
	}
	l.do(command{do: do, stretch: s.id, consumption: len(s.holds) - 1})
}

// cancelled notes that the consumer of the stretch is gone.
func (l *line) cancelled(now deadline.Instant, s *stretch) {
	i := len(s.holds) - 1
	switch h := &s.holds[i]; {
	case h.count == 0:
		l.emptied = append(l.emptied, now)
	case l.strands && !h.stays:
		l.putBacks = append(l.putBacks, putBack{now.Add(stayAfter), s.id, i})
	}
}

// putBackDue puts back the consumers whose time it is.
func (l *line) putBackDue(now deadline.Instant) {
	n := 0
	for ; n < len(l.putBacks) && l.putBacks[n].at <= now; n++ {
		p := l.putBacks[n]
		if s := l.byID[p.stretch]; s != nil && s.phase != returning && s.holds[p.consumption].count > 0 {
			s.holds[p.consumption].stays = true
			l.do(command{do: stay, stretch: s.id, consumption: p.consumption})
		}
	}
	l.putBacks = slices.Delete(l.putBacks, 0, n)
}

// leave cancels a consumer that was put back, if it was.
func (l *line) leave(s *stretch, consumption int) {
	if h := &s.holds[consumption]; h.stays {
		h.stays = false
		l.do(command{do: leave, stretch: s.id, consumption: consumption})
	}
}

// add appends a message to its stretch.
func (l *line) add(now deadline.Instant, s *stretch, e entry) {
	e.taken = uint32(now.Sub(l.started) / time.Second)
	e.stretch, e.prev, e.next, e.consumption = s.id, s.last, none, uint16(len(s.holds)-1)
	i := l.held.add(e)
	if s.last == none {
		s.first = i
	} else {
		l.held.entries[s.last].next = i
	}
	s.last = i
	s.held++
	s.holds[len(s.holds)-1].count++
}

// unlink takes a message out of its stretch.
func (l *line) unlink(now deadline.Instant, s *stretch, i uint32) {
	e := &l.held.entries[i]
	if e.prev == none {
		s.first = e.next
	} else {
		l.held.entries[e.prev].next = e.next
	}
	if e.next == none {
		s.last = e.prev
	} else {
		l.held.entries[e.next].prev = e.prev
	}
	s.held--
	h := &s.holds[e.consumption]
	if h.count--; h.count == 0 {
		l.leave(s, int(e.consumption))
		l.emptied = append(l.emptied, now)
	}
}

// giveBackDue gives back what is due, each message alone and in the order of the queue, and returns how many that are.
func (l *line) giveBackDue(now deadline.Instant) int {
	due := l.due[:0]
	for len(due) < dueAtOnce && l.held.nextDue() <= now {
		i := l.held.first()
		e := &l.held.entries[i]
		l.unlink(now, l.byID[e.stretch], i)
		l.out = append(l.out, command{do: giveBack, stretch: e.stretch, tag: e.tag})
		due = append(due, e.stretch)
		l.given.atDeadline(now, e)
		l.held.remove(i)
	}
	l.due = due
	slices.SortFunc(l.out[len(l.out)-len(due):], l.byPlace)
	for _, id := range slices.Compact(due) {
		if s := l.byID[id]; s != nil {
			l.dropIfEmpty(s)
		}
	}
	return len(due)
}

// byPlace orders what is given back as it lies in the queue.
func (l *line) byPlace(a, b command) int {
	if a.stretch == b.stretch {
		return cmp.Compare(a.tag, b.tag)
	}
	return cmp.Compare(l.byID[a.stretch].key, l.byID[b.stretch].key)
}

// giveBackStretch gives back all of a stretch; returned answers.
func (l *line) giveBackStretch(s *stretch) {
	s.phase, l.giving = returning, s
	for i := range s.holds {
		l.leave(s, i)
	}
	if l.quorum {
		l.giveBackEarlier(s)
	}
	l.do(command{do: giveBackAll, stretch: s.id})
	l.forget(s)
}

// giveBackEarlier gives back what the stretch's earlier consumers took, one after the other: a quorum queue takes the
// messages of several consumers back in any order.
func (l *line) giveBackEarlier(s *stretch) {
	for i := s.first; i != none; i = l.held.entries[i].next {
		e := &l.held.entries[i]
		if e.next != none && l.held.entries[e.next].consumption != e.consumption {
			l.out = append(l.out, command{do: giveBackTo, stretch: s.id, tag: e.tag})
		}
	}
}

// giveBackStrangers gives back messages published during a roll, which do not belong into a stretch further ahead. settled
// answers: on another channel the next consumer could overtake them, and take what was published after them.
func (l *line) giveBackStrangers(now deadline.Instant, s *stretch) {
	for i := s.first; i != none && len(s.strangers) > 0; {
		e := &l.held.entries[i]
		next := e.next
		if e.tag == s.strangers[0] {
			s.strangers = s.strangers[1:]
			l.given.alive(e, strayed)
			l.out = append(l.out, command{do: giveBack, stretch: s.id, tag: e.tag})
			l.unlink(now, s, i)
			l.held.remove(i)
		}
		i = next
	}
	s.strangers = nil
	l.settling = s
	l.out = append(l.out, command{do: settle, stretch: s.id})
}

// forget moves a stretch's messages to those that will come back.
func (l *line) forget(s *stretch) {
	for i := s.first; s.held > 0; {
		e := &l.held.entries[i]
		next := e.next
		l.given.alive(e, 0)
		l.held.remove(i)
		s.held--
		i = next
	}
	s.first, s.last, s.probeAt, s.strangers, s.holds = none, none, never, nil, nil
}

// lose takes out a stretch whose messages are back in the queue.
func (l *line) lose(now deadline.Instant, s *stretch) {
	l.epoch++
	l.forget(s)
	l.remove(s)
	l.emptied = append(l.emptied, now)
}

// forgetAll forgets every stretch and the consumer.
func (l *line) forgetAll() {
	for _, s := range l.stretches {
		l.forget(s)
	}
	l.stretches, l.consumer, l.giving, l.settling, l.putBacks = nil, nil, nil, nil, nil
	clear(l.byID)
	l.epoch++
}

func (l *line) remove(s *stretch) {
	delete(l.byID, s.id)
	if i := slices.Index(l.stretches, s); i >= 0 {
		l.stretches = slices.Delete(l.stretches, i, i+1)
	}
	if l.consumer == s {
		l.consumer = nil
	}
	if l.giving == s {
		l.giving = nil
	}
	if l.settling == s {
		l.settling = nil
	}
}

func (l *line) dropIfEmpty(s *stretch) {
	if s.held == 0 && s.phase == sealed && l.settling != s && l.byID[s.id] == s {
		l.remove(s)
		l.do(command{do: drop, stretch: s.id})
	}
}

// own is how many of the queue's consumers are the keeper's.
func (l *line) own() (n int) {
	if l.quorum {
		for _, s := range l.stretches {
			for i, h := range s.holds {
				if h.count > 0 && !(s == l.consumer && i == len(s.holds)-1) {
					n++
				}
			}
		}
	}
	if l.consumer != nil {
		n++
	}
	return n
}

// stillCounted is how many consumers that hold nothing any more may be counted still.
func (l *line) stillCounted(now deadline.Instant) int {
	l.emptied = slices.DeleteFunc(l.emptied, func(at deadline.Instant) bool { return at < now.Add(-countedOn) })
	if !l.quorum {
		return 0
	}
	return len(l.emptied)
}

// heldSince is when the first message of a stretch was taken, to a second.
func (l *line) heldSince(s *stretch) deadline.Instant {
	return l.started.Add(time.Duration(l.held.entries[s.first].taken) * time.Second)
}
