package access

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// Throttle slows down whoever guesses passwords, by the address guesses come from:
// names are chosen by the guesser, and cost nothing. It refuses nobody. Behind one
// address may be many clients (a sidecar's pod, NAT, a proxy), and the right password
// of one must get in while another guesses.
//
//	attempt ─► Begin ─► waits Attempt.Wait ─► the password is looked at ─► End ─► a wrong one waits for its answer
//
// Five failures of an address, none more than a minute after the one before, cost
// nothing. From then on, until a minute passes without one, its passwords are looked at
// five a second; an attempt for which that would take longer than a second is looked at
// after a second. So a right password is in after a second at most, and at once while
// the guesses are few. A wrong one is answered late, by a second at first, four at most.
// Who does not wait for the answer to one guess before the next is slowed by the wait
// before it, who does by both.
//
// What is remembered of a right password would answer guesses at any rate, so nothing is.
//
// The zero value is ready. It takes 400 KiB from the first failure on, and no more. Not
// safe for concurrent use.
type Throttle struct {
	seed maphash.Seed
	sets []set // by the hash of the source; nil before the first failure
}

// set is the sources of one hash. A new one takes the place of the one with the fewest
// failures, so that many new addresses do not make it forget who has guessed most.
type set [8]source

// source is where guesses come from.
type source struct {
	from   netip.Prefix
	failed int
	last   time.Time // failure
	next   time.Time // when the next password may be looked at
}

// Attempt is a login under way.
type Attempt struct {
	Wait    time.Duration // before its password is looked at
	from    netip.Prefix
	counted bool // it has taken a turn of its source's
}

const (
	freeFailures  = 5
	forgetAfter   = time.Minute
	turn          = time.Second / 5 // between two passwords of a source that guesses
	longestWait   = time.Second
	longestAnswer = 4 * time.Second
	sourceSets    = 512
	networkLength = 64 // of an IPv6 address: one host has that many
)

// Begin begins an attempt from an address; End ends it.
func (t *Throttle) Begin(from netip.Addr, now time.Time) Attempt {
	a := Attempt{from: network(from)}
	s := t.find(a.from)
	if s == nil || s.failed < freeFailures || s.forgotten(now) {
		return a
	}
	if s.next.Before(now) {
		s.next = now
	}
	if a.Wait = s.next.Sub(now); a.Wait >= longestWait {
		a.Wait = longestWait
		return a
	}
	s.next, a.counted = s.next.Add(turn), true
	return a
}

// End says how an attempt ended, and how long a wrong password is to wait for its
// answer. One that was not wrong, or not looked at, gives its turn back.
func (t *Throttle) End(a Attempt, now time.Time, wrong bool) (late time.Duration) {
	s := t.find(a.from)
	if !wrong {
		if s != nil && a.counted {
			s.next = s.next.Add(-turn)
		}
		return 0
	}
	if s == nil {
		s = t.remember(a.from, now)
	} else if s.forgotten(now) {
		s.failed = 0
	}
	s.failed, s.last = s.failed+1, now
	if s.failed <= freeFailures {
		return 0
	}
	return min(longestAnswer, time.Second<<min(s.failed-freeFailures-1, 8))
}

// network is what counts as one source: an address of IPv4, a network of IPv6, and
// together all that have no address.
func network(from netip.Addr) netip.Prefix {
	from = from.Unmap()
	length := from.BitLen()
	if from.Is6() {
		length = networkLength
	}
	p, _ := from.Prefix(length) // of no address: the zero prefix
	return p
}

func (s *source) forgotten(now time.Time) bool { return now.Sub(s.last) > forgetAfter }

// setOf is where a source stands if it is remembered.
func (t *Throttle) setOf(from netip.Prefix) *set {
	return &t.sets[maphash.Comparable(t.seed, from)%sourceSets]
}

func (t *Throttle) find(from netip.Prefix) *source {
	if t.sets == nil {
		return nil
	}
	among := t.setOf(from)
	for i := range among {
		if s := &among[i]; s.failed > 0 && s.from == from {
			return s
		}
	}
	return nil
}

// remember makes room for a source: where one is free or forgotten, else where the
// fewest failures are.
func (t *Throttle) remember(from netip.Prefix, now time.Time) *source {
	if t.sets == nil {
		t.seed, t.sets = maphash.MakeSeed(), make([]set, sourceSets)
	}
	among := t.setOf(from)
	least := &among[0]
	for i := range among {
		s := &among[i]
		if s.failed == 0 || s.forgotten(now) {
			least = s
			break
		}
		if s.failed < least.failed {
			least = s
		}
	}
	*least = source{from: from}
	return least
}
