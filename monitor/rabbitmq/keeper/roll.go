package keeper

import (
	"time"

	"curfew/broker/deadline"
)

// roll gives back a group of neighbouring stretches and takes their messages again as one, at the same place.
type roll struct {
	group       []*stretch
	key         uint64
	want        int      // messages given back, which are to be taken again
	asked       int      // how many the replacement may hold before its consumer is cancelled
	replacement *stretch // nil before it is opened, or if the group is the end of the queue
	got         int
	gotBefore   int  // got when its last consumer had ended
	again       bool // strangers came before messages that are still expected
	newcomer    bool // a message that was published since has come
	begun       deadline.Instant
	lastAt      deadline.Instant
	given       []leaving
}

// rolls is when stretches are given back and taken again.
type rolls struct {
	present   *roll            // nil: none
	next      deadline.Instant // when to look for a roll, at the earliest
	free      deadline.Instant // no roll begins before that
	compactAt deadline.Instant // when to look for sparse stretches
}

// by makes the keeper look for a roll at that time or earlier.
func (r *rolls) by(at deadline.Instant) { r.next = min(r.next, at) }

// compactBy makes the keeper look for sparse stretches at that time.
func (r *rolls) compactBy(at deadline.Instant) {
	r.compactAt = at
	r.by(at)
}

// probe plans to give the stretch back when a step in the age of one of its messages is over.
func (r *rolls) probe(s *stretch, e entry, at deadline.Instant) {
	if at < e.deadline && at < s.probeAt && !s.spent {
		s.probeAt = at
		r.by(at)
	}
}

// begin looks for stretches to give back and take again, and begins with the first it finds:
//
//   - a generation: they were held for half of the consumer_timeout;
//   - a probe: a message of unknown age may have expired;
//   - compaction: neighbours that together fill less than half a channel.
func (r *rolls) begin(now deadline.Instant, l *line, f Facts, perChannel int) bool {
	if now < r.next || now < r.free {
		return false
	}
	limit := f.HoldLimit()
	r.next = never
	var generation, probe *stretch
	for _, s := range l.stretches {
		if s.held == 0 {
			continue
		}
		if limit > 0 {
			since := l.started.Add(time.Duration(l.held.entries[s.first].taken) * time.Second) // its first message was taken, to the second
			at := since.Add(limit)
			if at <= now && generation == nil {
				generation = s
			}
			r.by(at)
		}
		if s.probeAt <= now && (probe == nil || s.probeAt < probe.probeAt) {
			probe = s
		}
		r.by(s.probeAt)
	}
	var group []*stretch
	switch {
	case generation != nil:
		group = []*stretch{generation}
	case probe != nil:
		group = []*stretch{probe}
	default:
		group = r.sparse(now, l, f, perChannel)
	}
	if len(group) == 0 {
		return false
	}
	r.present = &roll{group: group, key: group[0].key, begun: now, lastAt: now, gotBefore: -1}
	return true
}

// sparse returns neighbours that fit into half a channel together, if giving back costs nothing or channels run out. It
// leaves the last stretch alone, since that is still being filled.
func (r *rolls) sparse(now deadline.Instant, l *line, f Facts, perChannel int) []*stretch {
	if now < r.compactAt {
		r.by(r.compactAt)
		return nil
	}
	r.compactAt = now.Add(compactEvery)
	if len(l.stretches) > 2 {
		r.by(r.compactAt)
	}
	if f.returnsCount() && f.takes() >= 0 && len(l.stretches) < manyChannels {
		return nil
	}
	var run []*stretch
	held := 0
	for i := 0; i < len(l.stretches)-1; i++ {
		s := l.stretches[i]
		if held+s.held > perChannel/2 {
			if len(run) > 1 {
				break
			}
			run, held = run[:0], 0
		}
		if s.held <= perChannel/2 {
			run, held = append(run, s), held+s.held
		}
	}
	if len(run) < 2 {
		return nil
	}
	return run
}

// end ends the present roll.
func (r *rolls) end(now deadline.Instant, given *givenBack) {
	given.rolled = append(given.rolled, rolled{now, r.present.given})
	r.free = now.Add(rollShare * now.Sub(r.present.begun))
	r.present = nil
}

// came counts a delivery to the replacement. A message that was not held before is a stranger there.
func (r *roll) came(now deadline.Instant, m message, known bool) flags {
	r.lastAt = now
	if known {
		r.got++
		return 0
	}
	r.newcomer = r.newcomer || !m.redelivered // a cancelled consumer had it last
	return stranger
}

// expected is how many messages come back at least, if none of unknown age has expired.
func (r *roll) expected(now deadline.Instant) int {
	n := r.want
	for _, l := range r.given {
		if l.deadline <= now {
			n--
		}
	}
	return n
}

// quietUntil is when the replacement's consumer is cancelled if nothing more comes.
func (r *roll) quietUntil() deadline.Instant {
	if r.got == 0 {
		return r.lastAt.Add(quietAtFirst)
	}
	return r.lastAt.Add(quiet)
}

// give gives back the next stretch of the group; false: all have been given back.
func (r *roll) give(now deadline.Instant, l *line) bool {
	for len(r.group) > 0 {
		s := r.group[0]
		r.group = r.group[1:]
		if l.byID[s.id] != s { // it was lost
			continue
		}
		if s.held == 0 { // it has become empty
			s.phase = sealed
			l.dropIfEmpty(s)
			continue
		}
		r.want += s.held
		for i := s.first; i != none; i = l.held.entries[i].next {
			if e := &l.held.entries[i]; e.deadline != never {
				r.given = append(r.given, leaving{remembered{e.fingerprint, e.deadline, e.flags, e.early}, now})
			}
		}
		l.giveBackStretch(s)
		return true
	}
	return false
}

// takeAgain consumes what was given back, at its place, as one stretch of at most the given number of messages; false: no more is expected, or
// the consumer at the end of the queue takes it.
func (r *roll) takeAgain(now deadline.Instant, l *line, most int) bool {
	if r.replacement == nil {
		if tail := l.tail(); r.want == 0 || tail == nil || tail.key <= r.key {
			return false
		}
		r.lastAt = now
		r.asked = min(r.want, most)
		r.replacement = l.open(now, r.key, r.asked)
		return true
	}
	s := r.replacement
	if l.byID[s.id] != s {
		return false
	}
	if s.strangers > 0 {
		r.again = r.got < r.expected(now) && r.got > r.gotBefore
		r.gotBefore = r.got
		l.giveBackStrangers(now, s)
		return true
	}
	if !r.again {
		return false
	}
	r.again, r.newcomer, r.lastAt = false, false, now
	r.asked = min(s.held+r.want-r.got, most)
	missing := r.asked - s.held
	if missing <= 0 {
		return false
	}
	l.consumeOn(now, s, missing)
	return true
}

// advanceRoll continues the roll. There is no consumer, and nothing is on its way back.
func (c *core) advanceRoll(now deadline.Instant) {
	r := c.rolls.present
	if r.give(now, &c.line) {
		return
	}
	if !r.takeAgain(now, &c.line, c.cfg.perChannel) {
		c.rolls.end(now, &c.given)
	}
}
