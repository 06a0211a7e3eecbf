package keeper

import (
	"time"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/queuefacts"
)

const (
	lookEvery      = 500 * time.Millisecond // passive declare: consumers and ready messages, at least that often
	lookVaries     = 100 * time.Millisecond // by which looks come earlier, at most
	lookStep       = 37 * time.Millisecond
	lookAgain      = 25 * time.Millisecond  // after a look that cannot be used
	lookSurely     = 150 * time.Millisecond // after a look that saw another consumer
	seenWithin     = time.Minute            // a second look that sees another consumer is enough
	listAge        = 12 * time.Second       // of Facts.Others, at most: RabbitMQ's list lacks the last five seconds, and takes up to loadTimeout to arrive
	settleAfter    = 250 * time.Millisecond // a message that has not come back by then has expired
	settleAll      = time.Second            // the same, after all messages were given back and taken again
	forgetAfter    = 5 * time.Second        // its deadline is remembered until then
	firstRetry     = 2 * time.Millisecond   // a message that came back too early is given back again after this, then after 8 times this
	maxEarly       = 3                      // after that many more tries its deadline is wrong
	leastProbe     = time.Second            // messages of unknown age are not given back more often than this
	toldWithin     = 250 * time.Millisecond // lateness is told if it is known that well
	renewShare     = 9                      // after all was given back and taken again, that is not done for this many times as long as it took
	firstAside     = 10 * time.Second
	shortAside     = 2 * time.Second // when nothing was taken from the others before
	longestAside   = 5 * time.Minute
	flapWithin     = time.Minute
	retryRefused   = 10 * time.Second // after a permission was missing
	distrust       = 10 * time.Second // a restarted node reports 0 ready messages for its first seconds, and a queue counts consumers that have gone
	dueAtOnce      = 4096             // given back in one tick, at most
	manyChannels   = 1900             // of the 2,047 that RabbitMQ allows by default
	sparseChannels = 100              // more than that are too many if they are mostly empty
	longPast       = time.Second      // the deadline of another keeper that passed earlier than that is of no use, and the keeper's own may be that of another message
	forgetPast     = time.Minute      // after a deadline; then nothing is expected back
	judgeShareFor  = 1000             // messages held before the share without TTL counts
)

// config is what the core needs of Options.
type config struct {
	perChannel  int     // P: messages per channel
	limit       int     // messages held
	bytesLimit  int64   // their bodies
	probeShare  float64 // of the TTL
	endlessMost float64 // share of messages without TTL
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

	line    line
	given   givenBack
	ages    ages
	renewal renewal
	aside   aside
	looks   looks
	release release
	refusal refusal // of Refused

	counts Counts
	seen   queuefacts.TTLStats
	fresh  []Shadow // deadlines learned since they were last fetched
}

func newCore(cfg config, now deadline.Instant) *core {
	c := &core{cfg: cfg, renewal: renewal{probeAt: never}, aside: aside{span: firstAside}}
	c.line = newLine(now, &c.given)
	c.enter(now, Observing, reason{Connection, "not connected"})
	return c
}

func (c *core) enter(now deadline.Instant, s State, why reason) {
	if c.state != s || c.reason != why {
		c.state, c.reason, c.since = s, why, now
	}
}

// taking reports whether messages are to be held.
func (c *core) taking() bool { return c.state == Keeping && !c.release.going }

// connect begins with nothing held, on a new connection.
func (c *core) connect(now deadline.Instant, f Facts) {
	c.connected = true
	c.ages.trustAt = now
	if c.restarted || c.looks.inherits {
		c.ages.trustAt = now.Add(distrust)
	}
	c.restarted = true
	switch {
	case c.state != Observing:
	case c.refusal.sticky: // the lease was lost since
		c.enter(now, Refused, c.refusal.reason)
	default:
		c.enter(now, Observing, looking)
	}
	c.looks.at, c.looks.goodAt, c.looks.asked = now, now, false
	c.setFacts(now, f)
	c.advance(now)
}

// setFacts takes in what is now true of the queue.
func (c *core) setFacts(now deadline.Instant, f Facts) {
	if c.looks.takeList(now, f.Others) && c.state == StandingAside {
		c.aside.until = now
	}
	if f.Others == Present && c.taking() && c.looks.extra > 0 {
		c.standAside(now, reason{Consumer, "RabbitMQ lists another consumer"})
	}
	f.Others = Unclear
	if c.timeout > 0 && (f.ConsumerTimeout <= 0 || c.timeout < f.ConsumerTimeout) {
		f.ConsumerTimeout = c.timeout
	}
	changed := c.facts != f
	c.facts, c.stale = f, false
	c.looks.by(now.Add(lookEvery))
	if changed && c.taking() {
		c.ages.caughtUp = false // a TTL may have changed: deadlines known before stay
		c.ages.drained = now
		c.ages.backlog = 0
	}
}

// disconnect is the end of the connection: RabbitMQ has all messages again.
func (c *core) disconnect(now deadline.Instant, text string) {
	c.beginGap(now)
	if c.facts.Type == queuefacts.Quorum {
		c.looks.leave(now, len(c.line.stretches))
	}
	c.line.forgetAll()
	c.connected, c.looks.asked = false, false
	c.line.out = c.line.out[:0]
	switch {
	case c.state == Releasing:
		c.released(now)
	case c.state != Refused && c.state != Stopped:
		c.enter(now, Observing, reason{Connection, text})
	}
}

// beginGap notes that messages are not seen at once from now on. A renewal that is not over ends.
func (c *core) beginGap(now deadline.Instant) {
	if c.ages.gap(now) && c.given.renewedAt == 0 {
		c.given.waiting, c.given.passed = multiset{}, multiset{} // all that is in the queue has been seen: what has not come back is gone
	}
	c.given.renewedAt, c.renewal.began, c.renewal.probeAt, c.release.going = 0, 0, never, false
}

// tick gives back what is due, and does everything else that is due.
func (c *core) tick(now deadline.Instant) {
	if due := c.wake(); c.taking() && now.Sub(due) > toldWithin {
		c.line.held.doubt(&c.line, due)
	}
	if c.connected && c.taking() && c.hasRoom() {
		c.counts.GivenBack += uint64(c.line.giveBackDue(now))
	}
	c.counts.Expired += uint64(c.given.settle(now))
	c.given.sweep(now)
	if c.state == Refused && !c.refusal.sticky && c.refusal.retryAt != 0 && now >= c.refusal.retryAt {
		c.refusal.retryAt = 0
		c.enter(now, Observing, reason{Looking, "trying again"})
		c.setFacts(now, c.facts)
		c.looks.at = now
	}
	if c.connected && !c.looks.asked && now >= c.looks.at && c.state != Stopped {
		c.looks.asked, c.looks.askedAt = true, now
		c.looks.plan(now)
		c.line.out = append(c.line.out, command{do: look, epoch: c.line.epoch})
	}
	c.advance(now)
}

// wake is the next instant at which tick has something to do.
func (c *core) wake() deadline.Instant {
	at := c.given.wake()
	if c.connected && c.taking() {
		if c.hasRoom() {
			at = min(at, c.line.held.nextDue())
		}
		if !c.line.opening() {
			if c.wantsConsumer() {
				at = min(at, max(c.openAt, 1))
			}
			if c.ages.caughtUp {
				at = min(at, c.renewal.at(&c.line, c.facts, c.cfg.perChannel))
			}
		}
	}
	if c.connected && !c.looks.asked && c.state != Stopped {
		at = min(at, c.looks.at)
	}
	if c.state == Refused && c.refusal.retryAt != 0 {
		at = min(at, c.refusal.retryAt)
	}
	return at
}

// advance takes the next step, unless it waits for an answer.
func (c *core) advance(now deadline.Instant) {
	switch {
	case !c.connected:
	case c.release.going:
		c.advanceRelease(now)
	case c.taking():
		c.advanceTake(now)
	}
}
