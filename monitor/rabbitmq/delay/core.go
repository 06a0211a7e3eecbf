package delay

import (
	"cmp"
	"slices"
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

const (
	// patience is how long a command waits for a message that has not come: RabbitMQ may deliver it on another channel a moment later.
	patience = time.Second
	// idle is after how long without a delivery all that was in the queue counts as read, although fewer messages came than there were.
	idle = 2 * time.Second
	// returning is how long after a start messages may come back that a connection held which RabbitMQ has just lost.
	returning = 10 * time.Second
	// outcomesAtOnce is how many messages that were settled are remembered, twice, to answer commands about them.
	outcomesAtOnce = 50_000
	// recentFor is how long the due time of a message that was discarded is remembered, at least: it comes again if the connection is lost before
	// RabbitMQ has heard that.
	recentFor = time.Minute
	// forgetAfter is how long after it was due a due time is remembered of a message that does not come again.
	forgetAfter = 7 * 24 * time.Hour
	// HeldFor is how long before it is due a message that was put aside comes back. What is due sooner than stampFrom is not put aside at all.
	HeldFor   = time.Minute
	stampFrom = 5 * time.Second
)

// Known is how the due time of a message is known.
type Known string

const (
	ByReceipt   Known = "receipt"   // it came when it was published
	ByUntil     Known = "until"     // its header x-delay-until
	ByMemory    Known = "memory"    // this Curfew or the one before it knew
	ByTimestamp Known = "timestamp" // timestamp_in_ms, or timestamp and a second
	Unknown     Known = "unknown"   // it may have waited before: its delay began when it came
	ByCommand   Known = "command"   // it was rescheduled
	ByStamp     Known = "stamp"     // it was put aside, or could have been: RabbitMQ keeps its due time with it
)

// held is one message that waits: here, or put aside in RabbitMQ, then without a channel.
type held struct {
	due         deadline.Instant
	since       deadline.Instant // when it came; of a tombstone: it ends what was put aside until then
	message     *message         // of a command that waits for its target; nil: it is none
	fingerprint uint64
	id, key     string
	user        string // of a tombstone: whose messages it ends, core.self for anybody's
	to          string // the queue that it is for, with mode retry
	again       bool   // when it is due, it is given back to be looked at again
	deaths      int64
	channel     *channel
	tag         uint64
	known       Known
	guessed     bool             // it was Unknown when it got its stamp
	stays       bool             // it is not put aside
	expires     bool             // RabbitMQ may expire it while nobody holds it
	at          int              // in the heap; -1: it is settled
	next, prev  *held            // with the same id, the later and the earlier ones
	stamped     deadline.Instant // when it was first put aside, 0: it was not
	aside       deadline.Instant // of one that is: when it is due, by its stamp
	targets     int              // of a tombstone: how many messages it ends; 0: unclear
	unconfirmed bool             // a tombstone that is to be published, and RabbitMQ may not have it
	published   bool             // and it has not answered yet
	confirmed   []func(has bool) // is called when it has, or has refused it
}

// effect is something to be written: a message is discarded, so that RabbitMQ delivers it, or acknowledged, or given back, or a command is answered.
type effect struct {
	channel   *channel
	tag       uint64
	ack       bool
	again     bool
	to        string           // of a message that is discarded
	is        uint64           // its fingerprint
	aside     deadline.Instant // not 0: it is put aside, and is due then
	stamp     string           // goes with it
	until     deadline.Instant // 0: it comes back at once
	tombstone *held            // not nil: it is published
	replyTo   string           // of an answer
	correl    string
	answer    Outcome
}

// core holds the messages of one queue. It does nothing itself and is not safe for concurrent use. Invariant: each message that was delivered and
// whose channel is open is in waiting, in commands, in tombstones, or in out.
type core struct {
	queue    string
	ahead    time.Duration // how far the clock of now is ahead of the wall clock, which messages and RabbitMQ go by
	ttl      time.Duration // the queue's; negative: none
	cancel   cluster.Cancel
	isDelay  func(queue string) bool
	waiting  deadline.Heap[*held] // by due
	commands []*held              // that wait for their target, in the order in which they came; without a channel: of a message that is held
	awaited  map[string]int       // how many of them wait for a message
	byID     map[string]*held

	putsAside  bool                                  // RabbitMQ can
	aside      map[deadline.Instant]*held            // those of waiting that are, by their stamps
	free       map[deadline.Instant]deadline.Instant // the next stamp for those that are due then
	restamped  map[deadline.Instant]deadline.Instant // the stamps that others were replaced with by reschedule: RabbitMQ may not have heard
	delayed    bool                                  // RabbitMQ may have messages aside, even if it can put none there now
	asideAt    time.Time                             // when one was last put aside
	complete   bool                                  // no other message is aside
	tombstones map[tombstoneKey]*held                // commands that end messages when they come back; without a channel: RabbitMQ has it
	self       string                                // the user whose commands are always obeyed: our own

	remembered keeper.Multiset       // due times of messages that may come again
	recent     []recentDue           // of messages that were discarded a moment ago: RabbitMQ may not have heard
	unheard    []recentDue           // recent when a connection was lost: they come again soon, or never
	outcomes   [2]map[string]Outcome // of messages with an id; the second one is older
	ended      [2]map[ending]bool    // the messages that were cancelled or replaced in the last minutes: RabbitMQ may not have heard; the second one is older
	endedAt    deadline.Instant      // since when the first one is

	last     deadline.Instant // the last receipt
	backlog  int              // messages that were ready at the start and have not come
	empty    bool             // the last look found none ready; deliveries may still have been on their way
	caughtUp bool
	beganAt  deadline.Instant // 0: that is long ago

	troubles map[string]string // what is wrong, by name, since a session last took them
	out      []effect
	expired  []keeper.Expiry
	shadows  []keeper.Shadow
	counts   keeper.Counts
	acked    uint64 // messages cancelled or replaced
}

func newCore(queue string, cancel cluster.Cancel, isDelay func(string) bool) *core {
	waiting := deadline.Heap[*held]{Before: func(a, b *held) bool { return a.due < b.due }, Moved: func(e *held, place int) { e.at = place }}
	return &core{queue: queue, ttl: -1, waiting: waiting, cancel: cancel, isDelay: isDelay, byID: map[string]*held{}, awaited: map[string]int{},
		aside: map[deadline.Instant]*held{}, free: map[deadline.Instant]deadline.Instant{},
		restamped: map[deadline.Instant]deadline.Instant{}, tombstones: map[tombstoneKey]*held{},
		troubles: map[string]string{}, outcomes: [2]map[string]Outcome{{}, {}}, ended: [2]map[ending]bool{{}, {}}}
}

// begin starts over on a new connection, with that many messages ready.
func (c *core) begin(now deadline.Instant, ready int) {
	c.last, c.backlog, c.caughtUp, c.empty, c.endedAt, c.beganAt = max(c.last, now), ready, ready == 0, false, now, now
	for i := range c.unheard {
		c.unheard[i].at = now
	}
	c.publishAgain()
}

// looked takes in how many messages are ready. Two looks in succession that find none show that all have come which were ready at the start.
func (c *core) looked(ready int) {
	c.caughtUp = c.caughtUp || ready == 0 && c.empty
	c.empty = ready == 0
}

// clockIs takes in how far the clock is ahead of the wall clock, which somebody may set.
func (c *core) clockIs(ahead time.Duration) {
	moved := ahead - c.ahead
	if moved == 0 {
		return
	}
	c.ahead = ahead
	for _, e := range c.waiting.Items {
		if e.known == ByUntil {
			e.due = e.due.Add(moved)
		}
	}
	c.waiting.Init()
}

// deliver takes a delivery in.
func (c *core) deliver(now deadline.Instant, ch *channel, tag uint64, m *message) {
	for _, at := range []*deadline.Instant{&m.until, &m.published} {
		if *at > 0 {
			*at = at.Add(c.ahead)
		}
	}
	c.last = max(c.last+1, now) // no two messages are due at the same instant for having the same delay
	now = c.last
	c.counts.Taken++
	if c.backlog--; c.backlog <= 0 {
		c.caughtUp = true
	}
	for to := c.restamped[m.stamp]; to > 0; to = c.restamped[m.stamp] {
		m.stamp = to
	}
	e := &held{since: now, expires: m.life(c.ttl) >= 0, fingerprint: m.fingerprint, id: m.id, key: m.key, user: m.user, to: m.to, again: m.again, deaths: m.deaths, stamped: m.stamped, channel: ch, tag: tag}
	ch.add(now)
	if m.parked {
		c.settle(e, true)
		return
	}
	if m.before > 0 && m.user != "" && m.user == c.self {
		e.message = m
		c.readTombstone(e)
		return
	}
	if m.command == cancelling || m.command == rescheduling {
		e.message = m
		c.obey(now, e)
		return
	}
	e.due, e.known = c.dueOf(now, m)
	e.stays = e.known == ByStamp || m.expiresFirst(now, e.due, m.life(c.ttl))
	if m.expiresFirst(now, e.due, c.ttl) {
		c.troubles["ttl"] = "the queue has a message-ttl, and messages are due later: RabbitMQ delivers them early whenever Curfew does not hold them. Exempt the queue from that policy."
	}
	if m.returned {
		c.isBack(e, m)
	}
	if e.known == ByStamp && e.due > now.Add(HeldFor+stampFrom) {
		c.troubles["clock"] = "RabbitMQ's clock is ahead of Curfew's: what it has put aside comes back early, and is held until it is due. Have both clocks set by NTP."
	}
	if tombstones := c.tombstonesFor(e, m); len(tombstones) > 0 {
		c.endOne(e, tombstones)
		return
	}
	if is := (ending{e.fingerprint, m.stamped}); m.returned && (c.ended[0][is] || c.ended[1][is]) { // in the last minutes
		c.settle(e, true) // the acknowledgement was lost
		return
	}
	if m.command == replacing && e.known != ByMemory && e.known != ByStamp { // or it was held before, and has replaced already
		e.message = m
		c.obey(now, e)
		return
	}
	c.hold(now, e)
}

// hold has a message wait, and fulfils a command that came before it.
func (c *core) hold(now deadline.Instant, e *held) {
	e.message = nil
	if c.putsAside && !e.again && !e.stays && e.due > now.Add(stampFrom) {
		c.putAside(now, e)
	} else if !e.again && e.known != ByMemory && e.known != ByStamp && e.due > now {
		c.shadows = append(c.shadows, keeper.Shadow{Fingerprint: e.fingerprint, Deadline: e.due})
	}
	c.waiting.Push(e)
	if e.id == "" {
		return
	}
	if e.next = c.byID[e.id]; e.next != nil {
		e.next.prev = e
	}
	c.byID[e.id] = e
	if o := c.outcome(e.id); o != TooLate { // the id is used again
		delete(c.outcomes[0], e.id)
		delete(c.outcomes[1], e.id)
	}
	if c.awaited[e.id] == 0 {
		return
	}
	i := slices.IndexFunc(c.commands, func(command *held) bool { return command.message.target == e.id })
	command := c.commands[i]
	c.commands = slices.Delete(c.commands, i, i+1)
	c.awaits(command, -1)
	c.obey(now, command)
}

// dueOf returns when a message is due.
func (c *core) dueOf(now deadline.Instant, m *message) (deadline.Instant, Known) {
	if m.again { // whenever it came: it is only looked at again then
		return now.Add(m.delay), ByReceipt
	}
	if m.returned {
		if was := c.aside[m.stamp]; was != nil && was.fingerprint == m.fingerprint && m.until == 0 {
			return was.due, ByStamp
		}
		if m.stamp > 0 {
			return m.stamp.Add(c.ahead), ByStamp
		}
		if due, ok := c.remembered.TakeLast(m.fingerprint); ok {
			return due, ByMemory
		}
	}
	delay := m.delay
	if delay < 0 {
		delay = max(m.life(c.ttl), 0)
	}
	switch {
	case m.passed != "" && m.passed != c.queue && c.isDelay(m.passed):
		return now, ByReceipt
	case m.until > 0 && !m.returned && c.caughtUp:
		return max(m.until, now), ByUntil // it cannot have been late before it came
	case m.until > 0:
		return max(m.until, m.published), ByUntil
	case delay == 0:
		return now, ByReceipt
	case !m.returned && c.caughtUp:
		return now.Add(delay), ByReceipt
	case m.published > 0:
		return min(now, m.published).Add(delay), ByTimestamp
	}
	c.counts.UnknownAge++
	return now.Add(delay), Unknown
}

// settle ends the custody of a message: it is acknowledged, or discarded to be delivered.
func (c *core) settle(e *held, ack bool) {
	if e.at >= 0 && e.at < len(c.waiting.Items) && c.waiting.Items[e.at] == e {
		c.waiting.Remove(e.at)
		c.unlist(e)
	}
	e.channel.held--
	c.out = append(c.out, effect{channel: e.channel, tag: e.tag, ack: ack, again: e.again, to: e.to, is: e.fingerprint})
}

// unlist takes a message that waits out of those with its id.
func (c *core) unlist(e *held) {
	switch {
	case e.id == "":
		return
	case e.prev != nil:
		e.prev.next = e.next
	case e.next != nil:
		c.byID[e.id] = e.next
	default:
		delete(c.byID, e.id)
	}
	if e.next != nil {
		e.next.prev = e.prev
	}
	e.next, e.prev = nil, nil
}

// tick discards what is due, and ends the patience of commands.
func (c *core) tick(now deadline.Instant) {
	if now >= c.endedAt.Add(2*recentFor) {
		c.ended, c.endedAt = [2]map[ending]bool{{}, c.ended[0]}, now
	}
	if len(c.recent) > 0 && c.recent[0].at < now.Add(-2*recentFor) {
		c.recent = slices.DeleteFunc(c.recent, func(r recentDue) bool { return r.at < now.Add(-recentFor) })
	}
	if !c.caughtUp && now.Sub(c.last) >= idle {
		c.caughtUp = true
	}
	if !c.caughtUp {
		return
	}
	for len(c.commands) > 0 && now >= patienceEnds(c) {
		command := c.commands[0]
		c.commands = c.commands[1:]
		c.awaits(command, -1)
		c.obey(now, command)
	}
	for len(c.waiting.Items) > 0 && c.waiting.Items[0].due <= now {
		e := c.waiting.Items[0]
		if e.channel == nil { // RabbitMQ is late
			c.forget(e)
			c.complete = false
			continue
		}
		if e.again {
			c.settle(e, false)
			continue
		}
		c.note(e.id, TooLate)
		c.settle(e, false)
		c.recent = append(c.recent, recentDue{e.fingerprint, e.due, now})
		c.counts.GivenBack++
		c.counts.Expired++
		c.expired = append(c.expired, keeper.Expiry{Deadline: e.due, GivenBack: now, Fingerprint: e.fingerprint, AgeUnknown: e.known == Unknown || e.known == ByTimestamp})
	}
}

// wake is when tick, which was called now, has something to do again; in a minute at the latest.
func (c *core) wake(now deadline.Instant) deadline.Instant {
	at := now.Add(time.Minute)
	if !c.caughtUp {
		return c.last.Add(idle)
	}
	if len(c.waiting.Items) > 0 {
		at = min(at, c.waiting.Items[0].due)
	}
	if len(c.commands) > 0 {
		at = min(at, patienceEnds(c))
	}
	return at
}

// patienceEnds is until when the first command waits for its target. Soon after a start, that may still be on its way back.
func patienceEnds(c *core) deadline.Instant {
	at := c.commands[0].since.Add(patience)
	if c.beganAt > 0 {
		at = max(at, min(c.last.Add(idle), c.beganAt.Add(returning)))
	}
	return at
}

// lose drops what channels held that are gone, with nil all: RabbitMQ delivers it again. Due times are remembered.
func (c *core) lose(gone func(*channel) bool) {
	var again []keeper.Shadow
	for _, r := range c.recent {
		again = append(again, keeper.Shadow{Fingerprint: r.fingerprint, Deadline: r.due})
	}
	c.unheard, c.recent = append(c.unheard, c.recent...), nil
	for _, e := range c.tombstones {
		if gone == nil || e.channel != nil && gone(e.channel) {
			e.channel = nil
		}
	}
	lost := func(e *held) bool {
		if e.aside > 0 || gone != nil && (e.channel == nil || !gone(e.channel)) {
			return false
		}
		e.at = -1
		if e.message != nil {
			c.awaits(e, -1)
			return true
		}
		if !e.again {
			again = append(again, keeper.Shadow{Fingerprint: e.fingerprint, Deadline: e.due})
		}
		c.unlist(e)
		return true
	}
	c.commands = slices.DeleteFunc(c.commands, lost)
	c.waiting.Items = slices.DeleteFunc(c.waiting.Items, lost)
	c.waiting.Init()
	slices.SortFunc(again, func(a, b keeper.Shadow) int { return cmp.Compare(a.Deadline, b.Deadline) }) // what comes in order is remembered fast
	c.remember(again)
}
