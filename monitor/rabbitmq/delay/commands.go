package delay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

// Waiting is a message that waits.
type Waiting struct {
	ID    string // its message-id; "": it cannot be named
	Key   string
	To    string // the queue that it goes to; "": wherever the queue's dead letters go
	Due   deadline.Instant
	Known Known
}

// List returns up to limit messages that are due before an instant, 0 for any, the first to be due first. With an id, it returns only those that have it.
func (k *Keeper) List(before deadline.Instant, id string, limit int) (all []Waiting) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var found []*held
	first := func() {
		slices.SortFunc(found, func(a, b *held) int { return cmp.Or(cmp.Compare(a.due, b.due), strings.Compare(a.id, b.id)) })
		found = found[:min(limit, len(found))]
	}
	for _, e := range k.core.waiting.Items {
		if (before != 0 && e.due >= before) || (id != "" && e.id != id) {
			continue
		}
		if found = append(found, e); limit > 0 && len(found) >= 2*limit { // nobody waits for all to be sorted
			first()
			before = found[limit-1].due + 1
		}
	}
	first()
	for _, e := range found {
		known := e.known
		if e.guessed && known == ByStamp {
			known = Unknown
		}
		all = append(all, Waiting{e.id, e.key, e.to, e.due, known})
	}
	return all
}

// Cancel acknowledges the waiting messages with an id, which are never delivered. For one that is put aside it waits until RabbitMQ has that in the queue, or
// has refused it.
func (k *Keeper) Cancel(id string) Outcome {
	confirmed := make(chan bool, 1)
	outcome := k.do(func(c *core, now deadline.Instant) Outcome {
		o := c.cancelHere(now, id)
		c.tombstones[tombstoneKey{id, c.self}].whenConfirmed(func(has bool) { confirmed <- has })
		return o
	})
	select {
	case has := <-confirmed:
		if has {
			return outcome
		}
	case <-time.After(confirmTimeout):
	}
	return Unconfirmed
}

// Reschedule has the waiting messages with an id wait for that long from now, 0 for no longer.
func (k *Keeper) Reschedule(id string, in time.Duration) Outcome {
	return k.do(func(c *core, now deadline.Instant) Outcome { return c.reschedule(now, id, now.Add(max(0, in))) })
}

func (k *Keeper) do(change func(*core, deadline.Instant) Outcome) Outcome {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer deadline.Wake(k.wake)
	return change(k.core, k.nowLocked())
}

// confirmTimeout is how long Cancel waits without an answer: for one connection that is lost before RabbitMQ answers, and for the next.
const confirmTimeout = 2 * callTimeout

// Outcome is what became of a command.
type Outcome string

const (
	Cancelled   Outcome = "cancelled"
	Replaced    Outcome = "replaced"
	Rescheduled Outcome = "rescheduled"
	TooLate     Outcome = "too late"    // the message has been delivered
	NotFound    Outcome = "not found"   // no such message waits, nor was one settled in the last minutes
	Refused     Outcome = "refused"     // Options.Cancel does not let the sender, or the command names no message
	PutAside    Outcome = "put aside"   // RabbitMQ has it until a minute before it is due, and it cannot be changed until then
	Unclear     Outcome = "unknown"     // not known here, but RabbitMQ has messages aside since before this Curfew: it is cancelled if it comes back
	Unconfirmed Outcome = "unconfirmed" // it is cancelled or replaced unless this Curfew ends before RabbitMQ has taken that in, which it has refused or not answered
)

// obey does what a command says, or has it wait for its target.
func (c *core) obey(now deadline.Instant, e *held) {
	m := e.message
	outcome := c.command(now, m)
	if outcome == PutAside && m.command != rescheduling || outcome == Unclear && now >= e.since.Add(patience) && m.command == cancelling {
		c.plant(now, e, outcome)
		return
	}
	replaces := m.command == replacing && (outcome == Replaced || !m.only || e.known == Unknown && m.returned) // the last: perhaps it has replaced already
	if (outcome == NotFound || outcome == Unclear) && (now < e.since.Add(patience) || !c.caughtUp) && c.awaited[m.target] == 0 {
		if replaces && e.channel != nil {
			c.hold(now, e)
			e = &held{since: e.since, message: m}
		}
		c.commands = append(c.commands, e)
		c.awaits(e, 1)
		return
	}
	c.answer(m.replyTo, m.correl, outcome)
	switch {
	case e.channel == nil:
	case replaces:
		c.hold(now, e)
	default:
		c.settle(e, true)
	}
}

func (c *core) answer(replyTo, correlation string, o Outcome) {
	if replyTo != "" {
		c.out = append(c.out, effect{replyTo: replyTo, correl: correlation, answer: o})
	}
}

// command tries to do what a command says.
func (c *core) command(now deadline.Instant, m *message) Outcome {
	target := c.byID[m.target]
	switch {
	case m.invalid:
		return Refused
	case m.user != "" && m.user == c.self && m.command == cancelling:
		return c.end(tombstoneKey{m.target, m.user}, Cancelled)
	case c.cancel == cluster.CancelOff:
		return Refused
	case c.cancel == cluster.CancelSameUser && (m.user == "" || !ofOne(target, m.user)):
		return Refused
	case m.command == cancelling:
		return c.end(tombstoneKey{m.target, m.user}, Cancelled)
	case m.command == replacing:
		return c.end(tombstoneKey{m.target, m.user}, Replaced)
	}
	due := m.until
	if due == 0 {
		due = now.Add(max(0, m.delay))
	}
	return c.reschedule(now, m.target, due)
}

// ofOne reports whether all messages with an id are of that user.
func ofOne(e *held, user string) bool {
	for ; e != nil; e = e.next {
		if e.user != user {
			return false
		}
	}
	return true
}

// end acknowledges the waiting messages with an id for a user, which are never delivered. There are several if a publisher sent one again.
func (c *core) end(of tombstoneKey, as Outcome) Outcome {
	e := c.byID[of.id]
	if e == nil || c.isAside(e) {
		return c.absent(of, as)
	}
	before := c.outcome(of.id)
	for ; e != nil; e = c.byID[of.id] {
		c.endHere(e)
		c.acked++
	}
	if before == TooLate { // the first of several
		return TooLate
	}
	c.note(of.id, as)
	return as
}

// ending is a message that was cancelled or replaced. Its id may be used again, so it is known by what it is and when it was put aside, 0 for never.
type ending struct {
	fingerprint uint64
	stamped     deadline.Instant
}

// endHere acknowledges a message that is cancelled or replaced. It comes again if the connection is lost before RabbitMQ has heard that.
func (c *core) endHere(e *held) {
	c.settle(e, true)
	c.ended[0][ending{e.fingerprint, e.stamped}] = true
}

// reschedule changes when the waiting messages with an id are due. RabbitMQ keeps that with them if it can put messages aside: what it had by a stamp that
// says less would be early if it came again.
func (c *core) reschedule(now deadline.Instant, id string, due deadline.Instant) Outcome {
	first := c.byID[id]
	if first == nil || c.isAside(first) {
		return c.absent(tombstoneKey{id: id}, Rescheduled)
	}
	for e := first; e != nil; e = e.next {
		was := *e
		if e.due, e.known, e.guessed = due, ByCommand, false; c.putsAside && !e.expires && due > min(was.due, now.Add(stampFrom)) {
			c.putAside(now, e)
			if was.known == ByStamp {
				c.restamped[was.due.Add(-c.ahead)] = e.aside
			}
		} else {
			c.shadows = append(c.shadows, keeper.Shadow{Fingerprint: e.fingerprint, Deadline: was.due, AgeUnknown: true}, keeper.Shadow{Fingerprint: e.fingerprint, Deadline: due})
		}
		c.waiting.Fix(e.at)
		due++
	}
	return Rescheduled
}

// absent is the outcome for a message that does not wait. It is the same each time that a message is cancelled.
func (c *core) absent(of tombstoneKey, wanted Outcome) Outcome {
	if was := c.outcome(of.id); was == TooLate || was == wanted && was == Cancelled {
		return was
	}
	ends := func(of tombstoneKey) bool { return c.tombstones[of] != nil && c.tombstones[of].targets > 0 }
	switch {
	case c.byID[of.id] != nil || wanted == Cancelled && (ends(of) || ends(tombstoneKey{of.id, c.self})):
		return PutAside
	case (c.putsAside || c.delayed) && !c.complete:
		return Unclear
	}
	return NotFound
}

func (c *core) outcome(id string) Outcome {
	if o := c.outcomes[0][id]; o != "" {
		return o
	}
	return c.outcomes[1][id]
}

func (c *core) note(id string, o Outcome) {
	if id == "" {
		return
	}
	if len(c.outcomes[0]) >= outcomesAtOnce {
		c.outcomes = [2]map[string]Outcome{{}, c.outcomes[0]}
	}
	c.outcomes[0][id] = o
}

// awaits counts a command that waits for its target, or no longer does.
func (c *core) awaits(command *held, n int) {
	target := command.message.target
	if c.awaited[target] += n; c.awaited[target] == 0 {
		delete(c.awaited, target)
	}
}
