package keeper

import (
	"cmp"
	"slices"
	"time"

	"curfew/broker/deadline"
)

// stretch is what one channel holds: neighbours in the queue, in order of tags. At most one stretch has a consumer that takes more.
//
//	consume    opened        cancel        ended
//	──────► opening ──► live ──────► cancelling ──► sealed ──► giveBackAll: returning ──► gone
type stretch struct {
	id          uint32
	key         uint64 // its place among the stretches, and in the queue
	phase       phase
	held        int
	first, last uint32           // entries, by tag
	probeAt     deadline.Instant // when it is given back to see whether messages of unknown age have expired; or never
	spent       bool             // no more probes: one of its messages has been returned nearly as often as may be
	strangers   int
	holds       []holding // by consumption
}

type phase uint8

const (
	opening phase = iota
	live
	cancelling
	sealed
	returning
)

// line is the part of the queue that is held: its messages in stretches, in the order of the queue, and the consumer that
// takes more. It does nothing by itself; whatever it is asked to do goes out as commands.
//
// Invariants: every entry is in exactly one stretch; stretches are in order of key.
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
	started   deadline.Instant // entries count their time from then
	given     *givenBack
	out       []command
	due       []command // scratch

	quorum bool // a quorum queue counts a cancelled consumer that holds messages
	stays
	epoch uint32 // changes with the number of our consumers
	gone  int    // consumers that no longer hold anything and that a quorum queue may still count: it takes messages back in its own time
}

// do adds a command that may change the number of consumers.
func (l *line) do(cmd command) {
	l.epoch++
	l.out = append(l.out, cmd)
}

// waits reports whether the next step depends on an answer that is on its way.
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
	at, _ := slices.BinarySearchFunc(l.stretches, key, func(s *stretch, key uint64) int { return cmp.Compare(s.key, key) })
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

// consumeOn consumes on a stretch.
func (l *line) consumeOn(now deadline.Instant, s *stretch, prefetch int) {
	s.phase, l.consumer, l.openedAt = opening, s, now
	s.holds = append(s.holds, holding{asked: prefetch})
	l.do(command{do: consume, stretch: s.id, prefetch: prefetch})
}

// isTaking reports whether it is a consumer that takes more.
func (l *line) isTaking(s *stretch, consumption int) bool {
	return s == l.consumer && consumption == len(s.holds)-1
}

// isFull reports whether the consumer has taken as many as it asked for, so that RabbitMQ gives it no more. Its stretch may hold fewer than a channel
// may: what an earlier consumer of the stretch had taken may be gone.
func (l *line) isFull() bool {
	h := l.consumer.holds[len(l.consumer.holds)-1]
	return h.count >= h.asked
}

// add puts a message that the stretch's consumer received into the stretch, by tag: deliveries to two consumers of a channel may come out of
// order.
func (l *line) add(now deadline.Instant, s *stretch, e entry) {
	consumption := len(s.holds) - 1
	e.taken = uint32(now.Sub(l.started) / time.Second)
	e.stretch, e.prev, e.next, e.consumption = s.id, s.last, none, uint16(consumption)
	for e.prev != none && l.held.entries[e.prev].tag > e.tag {
		e.prev, e.next = l.held.entries[e.prev].prev, e.prev
	}
	i := l.held.add(e)
	if e.prev == none {
		s.first = i
	} else {
		l.held.entries[e.prev].next = i
	}
	if e.next == none {
		s.last = i
	} else {
		l.held.entries[e.next].prev = i
	}
	if s.held++; e.flags&stranger != 0 {
		s.strangers++
	}
	s.holds[consumption].count++
}

// unlink takes a message out of its stretch to be given back alone.
func (l *line) unlink(s *stretch, i uint32) {
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
	if s.held--; e.flags&stranger != 0 {
		s.strangers--
	}
	h, consumption := &s.holds[e.consumption], int(e.consumption)
	if h.count--; h.count > 0 {
		return
	}
	l.leave(s, consumption)
	if l.quorum && !l.isTaking(s, consumption) {
		l.gone++
	}
}

// giveBackDue gives back what is due, each message alone and in the order of the queue, and returns how many it gave back.
func (l *line) giveBackDue(now deadline.Instant) int {
	due := l.due[:0]
	for len(due) < dueAtOnce && l.held.nextDue() <= now {
		i := l.held.due.Items[0]
		e := &l.held.entries[i]
		l.unlink(l.byID[e.stretch], i)
		due = append(due, command{do: giveBack, stretch: e.stretch, tag: e.tag})
		l.given.atDeadline(now, e)
		l.held.remove(i)
	}
	l.due = due
	slices.SortFunc(due, l.byPlace)
	l.out = append(l.out, due...)
	for i, cmd := range due {
		if i > 0 && due[i-1].stretch == cmd.stretch {
			continue
		}
		l.dropIfEmpty(l.byID[cmd.stretch])
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

// giveBackEarlier gives back what the stretch's earlier consumers took, one consumer after another: a quorum queue takes
// the messages of several consumers back in any order.
func (l *line) giveBackEarlier(s *stretch) {
	for i := s.first; i != none; i = l.held.entries[i].next {
		e := &l.held.entries[i]
		if e.next != none && l.held.entries[e.next].consumption != e.consumption {
			l.out = append(l.out, command{do: giveBackTo, stretch: s.id, tag: e.tag})
		}
	}
}

// giveBackStrangers gives back messages that belong behind the stretch: those published during a roll. settled answers: before
// that, the next consumer, on another channel, could take messages that were published after them.
func (l *line) giveBackStrangers(now deadline.Instant, s *stretch) {
	var soon []leaving
	for i := s.first; s.strangers > 0; {
		e := &l.held.entries[i]
		next := e.next
		if e.flags&stranger != 0 {
			l.given.alive(e, strayed)
			if e.deadline <= now.Add(settleRolled) {
				soon = append(soon, leaving{remembered{e.fingerprint, e.deadline, e.flags &^ stranger, e.early}, now})
			}
			l.unlink(s, i)
			l.out = append(l.out, command{do: giveBack, stretch: s.id, tag: e.tag})
			l.held.remove(i)
		}
		i = next
	}
	if len(soon) > 0 {
		l.given.rolled = append(l.given.rolled, rolled{now, soon})
	}
	l.settling = s
	l.out = append(l.out, command{do: settle, stretch: s.id})
}

// forget moves a stretch's messages to those that are expected back.
func (l *line) forget(s *stretch) {
	l.gone += l.countedOf(s)
	for i := s.first; s.held > 0; {
		e := &l.held.entries[i]
		next := e.next
		l.given.alive(e, 0)
		l.held.remove(i)
		s.held--
		i = next
	}
	s.first, s.last, s.probeAt, s.strangers, s.holds = none, none, never, 0, nil
}

// lose takes out a stretch whose messages are back in the queue.
func (l *line) lose(s *stretch) {
	l.epoch++
	l.forget(s)
	l.remove(s)
}

// forgetAll forgets every stretch and the consumer.
func (l *line) forgetAll() {
	for _, s := range l.stretches {
		l.forget(s)
	}
	l.stretches, l.consumer, l.giving, l.settling = nil, nil, nil, nil
	l.putBacks = nil
	l.gone = 0
	clear(l.byID)
	l.epoch++
}

func (l *line) remove(s *stretch) {
	delete(l.byID, s.id)
	if i := slices.Index(l.stretches, s); i >= 0 {
		l.stretches = slices.Delete(l.stretches, i, i+1)
	}
	if l.giving == s {
		l.giving = nil
	}
	if l.settling == s {
		l.settling = nil
	}
	if l.consumer == s {
		l.consumer = nil
	}
}

func (l *line) dropIfEmpty(s *stretch) {
	if s.held == 0 && s.phase == sealed && l.settling != s && l.byID[s.id] == s {
		l.remove(s)
		l.do(command{do: drop, stretch: s.id})
	}
}

// own returns how many of the queue's consumers are the keeper's.
func (l *line) own() (n int) {
	for _, s := range l.stretches {
		n += l.countedOf(s)
	}
	return n
}

// countedOf returns how many consumers the queue counts for the stretch: the one that takes more, and on a quorum queue each that holds
// messages.
func (l *line) countedOf(s *stretch) (n int) {
	for i, h := range s.holds {
		if l.isTaking(s, i) || l.quorum && h.count > 0 {
			n++
		}
	}
	return n
}
