package keeper

import (
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

const (
	lookEvery      = 500 * time.Millisecond // passive declare: consumers and ready messages, at least that often
	lookVaries     = 100 * time.Millisecond // by which looks come earlier, at most
	lookStep       = 37 * time.Millisecond
	lookAgain      = 25 * time.Millisecond  // after a look that cannot be used
	listAge        = 12 * time.Second       // of Facts.Others, at most: RabbitMQ's list lacks the last five seconds, and takes up to loadTimeout to arrive
	glimpsesWithin = time.Minute            // a second look that sees another consumer is enough
	lookSurely     = 150 * time.Millisecond // after a look that saw another consumer
	goneWithin     = 5 * time.Second        // if looks cannot tell for so long whether there is another consumer, the list is asked
	neglectLeast   = 20                     // messages that are ready although all had been taken
	neglectFor     = 90 * time.Second       // if there are as many for so long, another consumer tries
	settleAfter    = 250 * time.Millisecond // a message that has not come back by then has expired
	settleRolled   = time.Second            // the same, for a message given back with its stretch
	forgetAfter    = 5 * time.Second        // its deadline is remembered until then
	firstRetry     = 2 * time.Millisecond   // a message that came back too early is given back again after this, then after 8 times this
	maxEarly       = 3                      // after that many more tries its deadline is wrong
	leastProbe     = 500 * time.Millisecond // one stretch is not given back more often than this
	toldWithin     = 250 * time.Millisecond // lateness is told if it is known that well
	quiet          = 100 * time.Millisecond // a stretch counts as taken again when nothing has come for that long
	quietAtFirst   = 500 * time.Millisecond // the same, before the first has come
	lateWithin     = 2 * time.Second        // within this a quorum queue takes back what it had delivered to a cancelled consumer
	stayAfter      = 20 * time.Millisecond  // a cancelled consumer is put back without credit
	rollShare      = 3                      // after a roll, none follows for this many times as long as it took
	compactEvery   = 10 * time.Second       // how often the keeper looks for sparse stretches
	firstAside     = 10 * time.Second
	shortAside     = 2 * time.Second // when nothing was taken from the others before
	longestAside   = 5 * time.Minute
	flapWithin     = time.Minute
	retryRefused   = 10 * time.Second // after a permission was missing
	distrustZero   = 10 * time.Second // a restarted node reports 0 ready messages for its first seconds
	dueAtOnce      = 4096             // given back in one tick, at most
	manyChannels   = 1500
	longPast       = time.Second // the deadline of another keeper that passed earlier than that is of no use, and the keeper's own may be that of another message
	forgetPast     = time.Minute // after a deadline; then nothing is expected back
	judgeShareFor  = 1000        // messages held before the share without TTL counts
	endlessMost    = 0.5         // that share, at most
	probeShare     = 0.05        // lateness of messages of unknown age as a share of their TTL
)

// config is what the core needs of Options.
type config struct {
	perChannel  int     // P: messages per channel
	limit       int     // messages held
	bytesLimit  int64   // their bodies
	takeRate    int     // messages per second at start
	endlessMost float64 // share of messages without TTL
	lookEvery   func() time.Duration
}

// core decides what is taken, held and given back. It does nothing itself: events come in by its methods, each with
// the present instant, and commands go out in line.out, to be carried out in order. It is not safe for concurrent use.
//
// Invariant, checked after each step by the tests: a message of known age is given back alone only at its deadline.
type core struct {
	cfg     config
	facts   Facts
	timeout time.Duration // a consumer_timeout that RabbitMQ has named when it closed a channel; 0: none
	stale   bool          // the facts are those of a queue that was deleted

	state  State
	reason reason
	since  deadline.Instant

	connected bool
	restarted bool             // there was a connection before
	openAt    deadline.Instant // no new consumer before it

	line  line
	given givenBack
	ages  ages
	rolls rolls
	aside aside

	looks   looks
	release release // of Releasing
	refusal refusal // of Refused

	counts Counts
	seen   cluster.TTLStats
	fresh  []Shadow // deadlines learned since they were last fetched
}

func newCore(cfg config, now deadline.Instant) *core {
	c := &core{cfg: cfg, rolls: rolls{next: never}, aside: aside{span: firstAside}}
	c.line = line{started: now, byID: map[uint32]*stretch{}, nextID: 1, nextKey: 1, given: &c.given}
	c.enter(now, Observing, reason{Connection, "not connected"})
	return c
}

func (c *core) enter(now deadline.Instant, s State, why reason) {
	if c.state != s || c.reason != why {
		c.state, c.reason, c.since = s, why, now
	}
}

// taking reports whether messages are to be held.
func (c *core) taking() bool {
	return c.state == Keeping
}

// connect begins with nothing held, on a new connection.
func (c *core) connect(now deadline.Instant, f Facts) {
	c.connected = true
	c.ages.trustAt = now
	if c.restarted || c.looks.inherits {
		c.ages.trustAt = now.Add(distrustZero)
	}
	c.restarted = true
	if c.state == Observing {
		c.enter(now, Observing, looking)
	}
	c.looks.at, c.looks.goodAt, c.looks.asked, c.looks.elsewhere = now, now, false, 0
	c.setFacts(now, f)
	c.advance(now)
}

// setFacts takes in what is now true of the queue.
func (c *core) setFacts(now deadline.Instant, f Facts) {
	if c.looks.takeList(now, f.Others) && c.state == StandingAside {
		c.aside.until = now
	}
	if f.Others == Present && c.looks.doubtAt != 0 && c.taking() {
		c.standAside(now, reason{Consumer, "RabbitMQ lists another consumer"})
	}
	f.Others = Unlisted
	if c.timeout > 0 && (f.ConsumerTimeout <= 0 || c.timeout < f.ConsumerTimeout) {
		f.ConsumerTimeout = c.timeout
	}
	changed := c.facts != f
	c.facts, c.stale, c.line.quorum, c.line.putsBack = f, false, f.Type == cluster.Quorum, f.putsBack()
	c.looks.at = min(c.looks.at, now.Add(lookEvery))
	switch {
	case c.state == Refused && changed:
		c.refusal = refusal{}
		c.enter(now, Observing, looking)
	case changed && c.taking():
		c.ages.caughtUp = false // a TTL may have changed: deadlines known before stay
		c.ages.drained = now
		c.ages.backlog = 0
	}
}

// disconnect is the end of the connection: RabbitMQ has all messages again.
func (c *core) disconnect(now deadline.Instant, text string) {
	c.beginGap(now)
	if c.line.quorum {
		c.looks.leave(c.line.own() + c.line.gone)
	}
	c.line.forgetAll()
	c.rolls.present, c.given.rolled = nil, nil
	c.connected, c.looks.asked, c.looks.doubtAt = false, false, 0
	c.line.out = c.line.out[:0]
	switch {
	case c.state == Releasing:
		c.released(now)
	case c.state != Refused && c.state != Stopped:
		c.enter(now, Observing, reason{Connection, text})
	}
}

// beginGap notes that messages are not seen at once from now on.
func (c *core) beginGap(now deadline.Instant) {
	if c.ages.gap(now) && c.rolls.present == nil && len(c.given.rolled) == 0 {
		c.given.waiting, c.given.passed = Multiset{}, Multiset{} // all that is in the queue has been seen: what has not come back is gone
	}
}

// tick gives back what is due, and does everything else that is due.
func (c *core) tick(now deadline.Instant) {
	if due := c.wake(); c.taking() && now.Sub(due) > toldWithin {
		c.line.held.doubt(&c.line, due)
	}
	if c.taking() && c.connected {
		c.counts.GivenBack += uint64(c.line.giveBackDue(now))
	}
	c.counts.Expired += uint64(c.given.settle(now))
	c.given.sweep(now)
	c.line.putBackDue(now)
	c.passTime(now)
	if c.connected && !c.looks.asked && now >= c.looks.at && c.state != Stopped {
		c.looks.asked, c.looks.askedAt = true, now
		c.planLook(now)
		c.line.out = append(c.line.out, command{do: look, epoch: c.line.epoch})
	}
	c.advance(now)
}

// passTime ends what lasts only for a time.
func (c *core) passTime(now deadline.Instant) {
	if c.state == Refused && c.refusal.retryAt != 0 && now >= c.refusal.retryAt {
		c.refusal.retryAt = 0
		c.enter(now, Observing, reason{Looking, "trying again"})
		c.looks.at = now
	}
}

// wake is the next instant at which tick has something to do.
func (c *core) wake() deadline.Instant {
	at := c.given.wake()
	if c.connected && c.taking() {
		at = min(at, c.line.held.nextDue())
		switch r := c.rolls.present; {
		case r != nil:
			if r.replacement != nil && c.line.consumer == r.replacement && !c.line.waits() {
				at = min(at, r.quietUntil())
			}
		case !c.line.waits():
			if c.ages.caughtUp && c.looks.doubtAt == 0 {
				at = min(at, max(c.rolls.next, c.rolls.free))
			}
			if c.line.consumer == nil {
				at = min(at, max(c.openAt, 1))
			}
		}
	}
	if c.connected && !c.looks.asked && c.state != Stopped {
		at = min(at, c.looks.at)
	}
	if len(c.line.putBacks) > 0 {
		at = min(at, c.line.putBacks[0].at)
	}
	if c.state == Refused && c.refusal.retryAt != 0 {
		at = min(at, c.refusal.retryAt)
	}
	return at
}

// advance takes the next step, unless it waits for an answer.
func (c *core) advance(now deadline.Instant) {
	if !c.connected || c.line.waits() {
		return
	}
	switch {
	case c.state == Releasing:
		c.advanceRelease(now)
	case c.taking():
		c.advanceTake(now)
	}
}
