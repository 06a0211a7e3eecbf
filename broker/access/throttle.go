package access

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// Throttle slows down password guessing, by the address that guesses come from: user names
// are the guesser's choice and cost nothing. It refuses nobody. Many clients may share an
// address (the containers of a pod, NAT, a proxy), and the right password of one must be
// accepted while another one guesses.
//
//	attempt ─► Begin ─► wait Attempt.Wait ─► verify the password ─► End ─► a wrong one waits for its answer
//
// An address may fail five times without delay, if no failure is more than a minute after
// the one before. From then on, until a minute passes without a failure, five of its
// passwords are verified per second. An attempt that would have to wait longer than a
// second is verified after one second. So a right password is accepted after at most a
// second, and at once while guesses are few. The answer to a wrong password is delayed, by
// one second at first and by four at most. A guesser that does not wait for the answers is
// slowed by the wait before verification, one that does by both.
//
// Throttle remembers nothing about right passwords: whatever it remembered would speed up
// guesses.
//
// The zero value is ready for use. It takes 400 KiB from the first failure on, and no more.
// It is not safe for concurrent use.
type Throttle struct {
	seed maphash.Seed
	sets []set // by the hash of the address; nil before the first failure
}

// set holds the sources with one hash. A new source replaces the one with the fewest
// failures, so that many new addresses cannot displace the one that has guessed most.
type set [8]source

// source is an address or a network that guesses come from.
type source struct {
	from   netip.Prefix
	failed int
	last   time.Time // the last failure
	next   time.Time // when the next password may be verified
}

// Attempt is a login in progress.
type Attempt struct {
	Wait      time.Duration // before the password is verified
	from      netip.Prefix
	turnTaken bool // it has taken one of its source's turns
}

const (
	freeFailures  = 5
	forgetAfter   = time.Minute
	guessInterval = time.Second / 5 // between two passwords of a guessing source
	longestWait   = time.Second
	longestAnswer = 4 * time.Second
	sourceSets    = 512
	networkLength = 64 // of an IPv6 address: one host has a whole network of that length
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
	s.next, a.turnTaken = s.next.Add(guessInterval), true
	return a
}

// End ends an attempt. It returns how long the answer to a wrong password must be delayed.
// An attempt that was not wrong, or not verified, gives its turn back.
func (t *Throttle) End(a Attempt, now time.Time, wrong bool) (delay time.Duration) {
	s := t.find(a.from)
	if !wrong {
		if s != nil && a.turnTaken {
			s.next = s.next.Add(-guessInterval)
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

// network returns what counts as one source: an IPv4 address, an IPv6 network, or all
// clients that have no address.
func network(from netip.Addr) netip.Prefix {
	from = from.Unmap()
	length := from.BitLen()
	if from.Is6() {
		length = networkLength
	}
	p, _ := from.Prefix(length) // without an address: the zero prefix
	return p
}

func (s *source) forgotten(now time.Time) bool { return now.Sub(s.last) > forgetAfter }

func (t *Throttle) find(from netip.Prefix) *source {
	if t.sets == nil {
		return nil
	}
	among := &t.sets[maphash.Comparable(t.seed, from)%sourceSets]
	for i := range among {
		if s := &among[i]; s.failed > 0 && s.from == from {
			return s
		}
	}
	return nil
}

// remember makes room for a source: in place of a free or forgotten one, otherwise of the
// one with the fewest failures.
func (t *Throttle) remember(from netip.Prefix, now time.Time) *source {
	if t.sets == nil {
		t.seed, t.sets = maphash.MakeSeed(), make([]set, sourceSets)
	}
	among := &t.sets[maphash.Comparable(t.seed, from)%sourceSets]
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
