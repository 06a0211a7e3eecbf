package access

import (
	"net/netip"
	"time"
)

// Throttle slows down whoever guesses passwords: five failures a minute of one
// user from one address cost nothing, after that each attempt waits, a second at
// first, then twice as long each time, 30 seconds at most. The zero value is
// ready. Not safe for concurrent use.
type Throttle struct {
	failed map[attempt]*failures
}

type attempt struct {
	user string
	from netip.Prefix // an address of IPv4, a network of IPv6
}

// failures of one attempt's kind. They are forgotten a minute after the last.
type failures struct {
	count   int
	waiting int
	last    time.Time
}

const (
	freeFailures  = 5
	forgetAfter   = time.Minute
	longestDelay  = 30 * time.Second
	mostWaiting   = 8    // attempts of a kind; more are refused unheard
	mostFailures  = 4096 // kinds that are remembered; any gives way to a new one
	networkLength = 64   // of an IPv6 address: one host has that many
)

// Begin says how long an attempt has to wait before its password may be looked
// at, and whether it may at all. An attempt that may is ended by End.
func (t *Throttle) Begin(user string, from netip.Addr, now time.Time) (wait time.Duration, ok bool) {
	f := t.failed[kind(user, from)]
	if f == nil || f.forgotten(now) {
		return 0, true
	}
	if wait = f.delay(); wait == 0 {
		return 0, true
	}
	if f.waiting == mostWaiting {
		return 0, false
	}
	f.waiting++
	return wait, true
}

// End notes how an attempt ended that waited so long. A success clears the
// account.
func (t *Throttle) End(user string, from netip.Addr, now time.Time, waited time.Duration, success bool) {
	k := kind(user, from)
	f := t.failed[k]
	if waited > 0 && f != nil && f.waiting > 0 {
		f.waiting--
	}
	switch {
	case success && f != nil && f.waiting == 0:
		delete(t.failed, k)
	case success && f != nil:
		f.count = 0
	case !success:
		if f == nil {
			f = t.remember(k, now)
		} else if f.forgotten(now) {
			f.count = 0
		}
		f.count, f.last = f.count+1, now
	}
}

func kind(user string, from netip.Addr) attempt {
	from = from.Unmap()
	length := from.BitLen()
	if from.Is6() {
		length = networkLength
	}
	p, _ := from.Prefix(length) // of no address: the zero prefix
	return attempt{user, p}
}

func (f *failures) forgotten(now time.Time) bool { return now.Sub(f.last) > forgetAfter }

func (f *failures) delay() time.Duration {
	if f.count < freeFailures {
		return 0
	}
	return min(longestDelay, time.Second<<min(f.count-freeFailures, 5))
}

func (t *Throttle) remember(k attempt, now time.Time) *failures {
	if t.failed == nil {
		t.failed = map[attempt]*failures{}
	}
	if len(t.failed) >= mostFailures {
		t.makeRoom(now)
	}
	f := &failures{}
	t.failed[k] = f
	return f
}

// makeRoom forgets what is old, or else anything.
func (t *Throttle) makeRoom(now time.Time) {
	for k, f := range t.failed {
		if f.forgotten(now) {
			delete(t.failed, k)
		}
	}
	for k := range t.failed {
		if len(t.failed) < mostFailures {
			return
		}
		delete(t.failed, k)
	}
}
