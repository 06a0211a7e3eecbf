package keeper

import (
	"slices"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// Expiry is one message that expired because it was given back. Instants are by the keeper's clock.
type Expiry struct {
	// Deadline is receipt plus TTL: later than RabbitMQ's own by at most the time from the queue to the keeper. With
	// AgeUnknown it is the latest instant possible.
	Deadline deadline.Instant
	// GivenBack is when the message was last given back. RabbitMQ does not report when it dead-letters or drops a
	// message; it does so as soon as the message is back in its queue.
	GivenBack   deadline.Instant
	Fingerprint uint64
	AgeUnknown  bool // or known less well than to a quarter of a second
}

// Shadow is the deadline of a held message, by its fingerprint.
type Shadow struct {
	Fingerprint uint64
	Deadline    deadline.Instant // at the latest, with AgeUnknown
	AgeUnknown  bool
}

// Counts only grow while a Keeper lives.
type Counts struct {
	Taken      uint64 // deliveries
	UnknownAge uint64 // of them of unknown age
	GivenBack  uint64 // at their deadline, one by one
	Expired    uint64 // given back, and did not come back
	Early      uint64 // given back, and came back
	Releases   uint64
	Rolls      uint64 // stretches given back and taken again: generations, probes, compaction
}

// Release is one giving back of all that was held.
type Release struct {
	At       deadline.Instant
	Took     time.Duration
	Messages int
	Code     Code
	Reason   string
}

// Status is what a keeper does at one instant.
type Status struct {
	State       State
	Code        Code
	Reason      string
	Since       deadline.Instant
	Keeper      string // who holds the lease: the name of this Curfew or another; "" is unknown
	LeaseError  string // why the lease cannot be renewed or taken
	Held        int
	Commands    int // to the keeper, that are held until their messages are back
	HeldBytes   int64
	WithoutTTL  int
	CaughtUp    bool             // all that was in the queue has been taken
	NextDue     deadline.Instant // 0: nothing expires
	LookedAt    deadline.Instant // when RabbitMQ last said how many messages and consumers there are; 0: never
	Ready       int              // by the last look
	Consumers   int              // those that are not the keeper's, by the last look
	Seen        cluster.TTLStats // since the Keeper was made
	LastRelease Release
	Counts      Counts
}

func (c *core) status() Status {
	held := &c.line.held
	s := Status{State: c.state, Code: c.reason.code, Reason: c.reason.text, Since: c.since,
		Held: held.count, HeldBytes: held.bytes, WithoutTTL: held.endless, CaughtUp: c.ages.caughtUp,
		LookedAt: c.looks.goodAt, Ready: c.looks.ready, Consumers: c.looks.others, Seen: c.seen, LastRelease: c.release.last, Counts: c.counts}
	if due := held.nextDue(); due != never {
		s.NextDue = due
	}
	return s
}

// shadows returns all deadlines that are known.
func (l *line) shadows() (all []Shadow) {
	for i := range l.held.entries {
		if e := &l.held.entries[i]; e.tag != 0 && e.deadline != never {
			all = append(all, Shadow{e.fingerprint, e.deadline, e.flags&uncertain != 0})
		}
	}
	return append(append(all, l.given.waiting.Shadows()...), l.given.passed.Shadows()...)
}

// Remembered returns the deadlines that are known.
func (k *Keeper) Remembered() []Shadow {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.core.line.shadows()
}

// PendingBefore appends the number of held deadlines up to each of the instants, which are in order. It looks at
// every message held.
func (k *Keeper) PendingBefore(until []deadline.Instant, out []int64) []int64 {
	counts := make([]int64, len(until)+1)
	k.mu.Lock()
	for i := range k.core.line.held.entries {
		if e := &k.core.line.held.entries[i]; e.tag != 0 && e.deadline != never {
			at, _ := slices.BinarySearch(until, e.deadline)
			counts[at]++
		}
	}
	k.mu.Unlock()
	sum := int64(0)
	for _, n := range counts[:len(until)] {
		sum += n
		out = append(out, sum)
	}
	return out
}
