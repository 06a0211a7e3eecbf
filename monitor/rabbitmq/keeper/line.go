package keeper

import (
	"cmp"
	"slices"
	"time"

	"curfew/broker/deadline"
)

// stretch is what one channel holds: neighbours in the queue, in order of tags, and the consumer that takes them.
//
//	consume    opened      cancel       ended       giveBackAll         returned
//	──────► opening ──► live ──► closing ──► sealed ──────────► returning ──────► gone
type stretch struct {
	id    uint32 // a later stretch of the queue has a higher one
	phase phase
	held  int
	since deadline.Instant // when the first of its messages was taken
}

type phase uint8

const (
	opening phase = iota
	live
	closing
	sealed
	returning
)

// line is the part of the queue that is held: its messages in stretches, in the order of the queue. It does nothing by itself; whatever it is
// asked to do goes out as commands.
//
// Every stretch has a consumer until everything is given back. A later one has a higher priority, so only the last one takes what is new.
//
// Invariants: every entry is in exactly one stretch; stretches are in order of id; only the last one is ever opening.
type line struct {
	held      heldMessages
	stretches []*stretch
	byID      map[uint32]*stretch
	nextID    uint32
	started   deadline.Instant // entries count their time from then
	given     *givenBack
	out       []command
	due       []command // scratch
	epoch     uint32    // changes with the number of our consumers
}

func newLine(now deadline.Instant, given *givenBack) line {
	return line{started: now, byID: map[uint32]*stretch{}, given: given}
}

// do adds a command that may change the number of consumers.
func (l *line) do(action action, s *stretch) {
	l.epoch++
	l.out = append(l.out, command{do: action, stretch: s.id})
}

// tail is the last stretch; nil if there is none.
func (l *line) tail() *stretch {
	if len(l.stretches) == 0 {
		return nil
	}
	return l.stretches[len(l.stretches)-1]
}

// opening reports whether the last consumer has not begun yet.
func (l *line) opening() bool {
	tail := l.tail()
	return tail != nil && tail.phase == opening
}

// open begins to consume at the end of the queue, on a new channel.
func (l *line) open() {
	l.nextID++
	s := &stretch{id: l.nextID}
	l.byID[s.id] = s
	l.stretches = append(l.stretches, s)
	l.do(consume, s)
}

// add puts a message that the stretch's consumer received into the stretch.
func (l *line) add(now deadline.Instant, s *stretch, e entry) {
	e.taken, e.stretch = uint32(now.Sub(l.started)/time.Second), s.id
	l.held.add(e)
	if s.held++; s.held == 1 {
		s.since = now
	}
}

// giveBackDue gives back what is due, each message alone and in the order of the queue, and returns how many it gave back.
func (l *line) giveBackDue(now deadline.Instant) int {
	due := l.due[:0]
	for len(due) < dueAtOnce && l.held.nextDue() <= now {
		i := l.held.due[0]
		e := &l.held.entries[i]
		l.byID[e.stretch].held--
		due = append(due, command{do: giveBack, stretch: e.stretch, tag: e.tag})
		l.given.atDeadline(now, e)
		l.held.remove(i)
	}
	l.due = due
	slices.SortFunc(due, func(a, b command) int { return cmp.Or(cmp.Compare(a.stretch, b.stretch), cmp.Compare(a.tag, b.tag)) })
	l.out = append(l.out, due...)
	return len(due)
}

// dropEmpty closes the channels that hold nothing, but for the last one, and returns how many.
func (l *line) dropEmpty() int {
	before, tail := len(l.stretches), l.tail()
	l.stretches = slices.DeleteFunc(l.stretches, func(s *stretch) bool {
		empty := s.held == 0 && s.phase == live && s != tail
		if empty {
			delete(l.byID, s.id)
			l.do(drop, s)
		}
		return empty
	})
	return before - len(l.stretches)
}

// close cancels every consumer, and reports whether all have ended.
func (l *line) close() (all bool) {
	all = true
	for _, s := range l.stretches {
		if s.phase == live {
			s.phase = closing
			l.do(cancel, s)
		}
		all = all && s.phase >= sealed
	}
	return all
}

// forget moves messages of the stretch, or with nil all messages, to those that are expected back.
func (l *line) forget(of *stretch) {
	for i := range l.held.entries {
		if e := &l.held.entries[i]; e.tag != 0 && (of == nil || e.stretch == of.id) {
			l.given.alive(e)
			if of != nil {
				l.held.remove(uint32(i))
			}
		}
		if len(l.held.entries) == 0 { // that was the last message
			break
		}
	}
	if of == nil {
		l.held.clear()
	}
	for _, s := range l.stretches {
		if of == nil || s == of {
			s.held = 0
		}
	}
}

// forgetAll forgets every stretch.
func (l *line) forgetAll() {
	l.forget(nil)
	l.stretches = nil
	clear(l.byID)
	l.epoch++
}

func (l *line) remove(s *stretch) {
	l.epoch++
	delete(l.byID, s.id)
	if i := slices.Index(l.stretches, s); i >= 0 {
		l.stretches = slices.Delete(l.stretches, i, i+1)
	}
}

// oldest is when the first of the messages held was taken; never if there are none.
func (l *line) oldest() deadline.Instant {
	at := never
	for _, s := range l.stretches {
		if s.held > 0 {
			at = min(at, s.since)
		}
	}
	return at
}
