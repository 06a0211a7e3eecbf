package keeper

import (
	"cmp"
	"slices"
	"time"

	"curfew/broker/deadline"
)

// leaving is a message that was given back and should expire.
type leaving struct {
	remembered
	at deadline.Instant // when it was given back
}

// rolled are messages given back with their stretches, or as strangers just before their deadlines. Most come back; those that have not come
// back a moment later have expired.
type rolled struct {
	at    deadline.Instant // when the roll ended, or strangers were given back
	given []leaving
}

// givenBack remembers messages that are not held at the moment, by their fingerprints, and finds out which of them have
// expired. The zero value is empty.
type givenBack struct {
	waiting Multiset // given back before their deadlines, or lost with a channel
	passed  Multiset // waiting at an earlier time; then applications took messages that were behind them in the queue
	sweptAt deadline.Instant
	left    Multiset // given back at their deadlines

	leaving   []leaving
	settled   int      // leaving[:settled] have been judged
	forgotten int      // leaving[:forgotten] are no longer needed
	rolled    []rolled // by the instant
	expired   []Expiry // since they were last fetched
}

// alive notes a message that will come back.
func (g *givenBack) alive(e *entry, also flags) {
	if e.deadline != never {
		g.waiting.add(remembered{e.fingerprint, e.deadline, e.flags&^(hinted|stranger) | also, e.early})
	}
}

// atDeadline notes a message that should expire.
func (g *givenBack) atDeadline(now deadline.Instant, e *entry) {
	r := remembered{e.fingerprint, e.deadline, e.flags &^ stranger, e.early}
	g.left.add(r)
	g.leaving = append(g.leaving, leaving{r, now})
}

// pass notes that a message has come, or gone, that was behind everything that is expected back. What does come back after that was held
// by an application.
func (g *givenBack) pass() {
	if len(g.rolled) == 0 && len(g.waiting) > 0 {
		g.passed, g.waiting = g.waiting, Multiset{}
	}
}

// take removes what is remembered of a message that was taken.
func (g *givenBack) take(now deadline.Instant, fingerprint uint64) (r remembered, ok bool) {
	if r, ok = g.waiting.take(fingerprint); !ok {
		r, ok = g.passed.take(fingerprint)
		r.flags |= hinted
	}
	if r.deadline < now.Add(-longPast) {
		r.flags |= hinted
	}
	return r, ok
}

// retry returns how long after its return a message that came back too early is given back again; false: its deadline is wrong.
func (r *remembered) retry() (after time.Duration, ok bool) {
	return firstRetry << (3 * r.early), r.early < maxEarly && r.flags&hinted == 0
}

// sweep forgets, once a minute, what can no longer come back.
func (g *givenBack) sweep(now deadline.Instant) {
	if now >= g.sweptAt.Add(forgetPast) {
		g.sweptAt = now
		g.waiting.DropBefore(now.Add(-forgetPast))
		g.passed.DropBefore(now.Add(-forgetPast))
	}
}

// settle adds the messages that were given back and have not come back to expired, and returns how many it has added.
// Some seconds later it forgets them.
func (g *givenBack) settle(now deadline.Instant) int {
	before := len(g.expired)
	for ; g.settled < len(g.leaving) && now >= g.leaving[g.settled].at.Add(settleAfter); g.settled++ {
		if l := g.leaving[g.settled]; g.left.has(l.remembered) {
			g.hasExpired(l)
		}
	}
	for len(g.rolled) > 0 && now >= g.rolled[0].at.Add(settleRolled) {
		for _, l := range g.rolled[0].given {
			if g.waiting.Remove(l.fingerprint, l.deadline) {
				g.hasExpired(l)
			}
		}
		g.rolled = slices.Delete(g.rolled, 0, 1)
	}
	for ; g.forgotten < g.settled && now >= g.leaving[g.forgotten].at.Add(forgetAfter); g.forgotten++ {
		l := g.leaving[g.forgotten]
		g.left.Remove(l.fingerprint, l.deadline)
	}
	if g.forgotten > 1024 || g.forgotten == len(g.leaving) {
		g.leaving = slices.Delete(g.leaving, 0, g.forgotten)
		g.settled -= g.forgotten
		g.forgotten = 0
	}
	return len(g.expired) - before
}

func (g *givenBack) hasExpired(l leaving) {
	g.expired = append(g.expired, Expiry{Deadline: l.deadline, GivenBack: l.at, Fingerprint: l.fingerprint,
		AgeUnknown: l.flags&uncertain != 0})
}

// wake is the next instant at which settle has something to do.
func (g *givenBack) wake() deadline.Instant {
	at := never
	if g.settled < len(g.leaving) {
		at = min(at, g.leaving[g.settled].at.Add(settleAfter))
	}
	if len(g.rolled) > 0 {
		at = min(at, g.rolled[0].at.Add(settleRolled))
	}
	if g.forgotten < g.settled {
		at = min(at, g.leaving[g.forgotten].at.Add(forgetAfter))
	}
	return at
}

// doubt notes that messages taken since then may have waited before that. Those that were given back since then may be among them.
func (g *givenBack) doubt(since deadline.Instant) {
	for i := len(g.leaving) - 1; i >= g.settled && g.leaving[i].at >= since; i-- {
		g.leaving[i].flags |= untold
	}
}

// remember takes in what another keeper, or an earlier Run, knew.
func (g *givenBack) remember(now deadline.Instant, shadows []Shadow) {
	for _, s := range shadows {
		r := remembered{fingerprint: s.Fingerprint, deadline: s.Deadline}
		if s.Deadline < now.Add(-longPast) || s.Deadline == never || g.waiting.has(r) {
			continue
		}
		if s.AgeUnknown {
			r.flags |= unknownAge
		}
		g.waiting.add(r)
	}
}

// remembered is a message that is not held at the moment, known by its fingerprint.
type remembered struct {
	fingerprint uint64
	deadline    deadline.Instant
	flags       flags
	early       uint8
}

// Multiset keeps the deadlines of messages by fingerprint, in order. Equal messages share a fingerprint, and nobody can tell which
// deadline belongs to which message. So the first message that comes back gets the earliest: the set of deadlines is the
// same. The zero value is empty.
type Multiset map[uint64][]remembered

// find returns the place of the first record of a fingerprint with that deadline or a later one.
func (m Multiset) find(fingerprint uint64, at deadline.Instant) (place int, found bool) {
	return slices.BinarySearchFunc(m[fingerprint], at, func(r remembered, at deadline.Instant) int { return cmp.Compare(r.deadline, at) })
}

// add adds a record. What comes in order of deadline is added fast.
func (m *Multiset) add(r remembered) {
	if *m == nil {
		*m = Multiset{}
	}
	place, _ := m.find(r.fingerprint, r.deadline+1)
	(*m)[r.fingerprint] = slices.Insert((*m)[r.fingerprint], place, r)
}

// take removes the earliest record of a fingerprint.
func (m Multiset) take(fingerprint uint64) (r remembered, ok bool) {
	if list := m[fingerprint]; len(list) > 0 {
		m.delete(fingerprint, 0)
		return list[0], true
	}
	return r, false
}

// Note adds a deadline unless it is there.
func (m *Multiset) Note(fingerprint uint64, at deadline.Instant) {
	if _, found := m.find(fingerprint, at); !found {
		m.add(remembered{fingerprint: fingerprint, deadline: at})
	}
}

// TakeLast removes the latest record of a fingerprint, and returns its deadline.
func (m Multiset) TakeLast(fingerprint uint64) (at deadline.Instant, ok bool) {
	last := len(m[fingerprint]) - 1
	if last < 0 {
		return 0, false
	}
	at = m[fingerprint][last].deadline
	m.delete(fingerprint, last)
	return at, true
}

// DropBefore removes all records with earlier deadlines.
func (m *Multiset) DropBefore(at deadline.Instant) {
	for fingerprint := range *m {
		for n, _ := m.find(fingerprint, at); n > 0; n-- {
			m.delete(fingerprint, 0)
		}
	}
	if len(*m) == 0 {
		*m = nil // a map keeps the memory of a busy hour
	}
}

// has reports whether there is a record with that deadline that has come back early that often.
func (m Multiset) has(r remembered) bool {
	place, _ := m.find(r.fingerprint, r.deadline)
	return slices.ContainsFunc(m[r.fingerprint][place:], func(o remembered) bool { return o.deadline == r.deadline && o.early == r.early })
}

// Remove takes one record with that deadline out, and reports whether there was one.
func (m Multiset) Remove(fingerprint uint64, at deadline.Instant) bool {
	place, found := m.find(fingerprint, at)
	if found {
		m.delete(fingerprint, place)
	}
	return found
}

func (m Multiset) delete(fingerprint uint64, place int) {
	switch list := m[fingerprint]; {
	case len(list) == 1:
		delete(m, fingerprint)
	case place == 0:
		m[fingerprint] = list[1:]
	default:
		m[fingerprint] = slices.Delete(list, place, place+1)
	}
}

// Shadows returns all.
func (m Multiset) Shadows() (all []Shadow) {
	for _, list := range m {
		for _, r := range list {
			all = append(all, Shadow{r.fingerprint, r.deadline, r.flags&uncertain != 0})
		}
	}
	return all
}
