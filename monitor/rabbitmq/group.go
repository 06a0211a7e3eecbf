package rabbitmq

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/lease"
)

const (
	beatEvery   = time.Second
	beatTimeout = 2 * time.Second
	// unwantedAfter is how often, once a second, a lease has to be found free before an instance that has its share takes it.
	unwantedAfter = 3
	// settledAfter is how long the members have to stay the same before queues change hands.
	settledAfter = 5 * time.Second
	// yieldPause is how long an instance that has given a queue back leaves it to the others.
	yieldPause = 5 * time.Second
	// Each look at a queue costs RabbitMQ half a millisecond of a processor (3.10). So beside many queues one Curfew looks once each lookPause, and at the
	// same queue at least every longestLook.
	lookPause   = 5 * time.Millisecond
	longestLook = 5 * time.Second
)

// group is what the Curfews beside one virtual host share, as this one sees it: their names, and how many leases each may
// have. It is safe for concurrent use.
type group struct {
	mu        sync.Mutex
	redis     *lease.Group // nil: there is no Redis, so no other Curfew; or it is not known yet which cluster this is
	failing   failing      // reaching Redis fails
	members   []string
	reports   []report  // of the others
	since     time.Time // when the members last changed
	paused    bool
	seenUntil map[string]time.Time // by queue: when another one last held all messages, at least; for an hour
	wanted    int                  // queues that may be kept
	taken     map[*turn]struct{}   // leases that are held here, or being tried for
}

// shared returns the group in Redis; nil: there is none, or none yet.
func (g *group) shared() *lease.Group {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.redis
}

// shareLocked returns how many leases this Curfew may have.
func (g *group) shareLocked() int { return (g.wanted + len(g.members) - 1) / len(g.members) }

// lookEvery returns how often a keeper is to look at its queue while nothing is unclear.
func (g *group) lookEvery() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return min(time.Duration(g.shareLocked())*lookPause, longestLook)
}

// setWanted sets how many queues may be kept.
func (g *group) setWanted(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.wanted = n
}

// surplus returns by how many the leases held exceed the share, while there are others to take them.
func (g *group) surplus() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.failing.err != nil || len(g.members) == 1 || time.Since(g.since) < settledAfter {
		return 0
	}
	return len(g.taken) - g.shareLocked()
}

// see takes in the result of a beat. It reports whether Redis has begun to answer again, or has stopped; whether an operator has paused or
// resumed everything since the last beat; and whether Redis has lost that everything is paused.
func (g *group) see(v lease.View, err error) (news, turned, lost bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	news = g.failing.note(err)
	if err != nil {
		return news, false, false
	}
	if !slices.Equal(v.Members, g.members) {
		g.members, g.since = v.Members, time.Now()
		for t := range g.taken {
			t.unwanted = false
		}
	}
	g.reports = readReports(v.Reports)
	g.noteSeenLocked()
	if v.Pause == "" {
		return news, false, g.paused
	}
	was := g.paused
	g.paused = v.Pause == lease.Paused
	return news, g.paused != was, false
}

// setPaused has nobody keep anything, or ends that. It reports whether that was so before.
func (g *group) setPaused(paused bool) (was bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	was, g.paused = g.paused, paused
	return was
}

// isPaused reports whether nobody keeps anything.
func (g *group) isPaused() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.paused
}

// trouble returns why leases cannot be renewed or taken; without an error they can.
func (g *group) trouble() failing {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.failing
}

// names returns the names of all that live.
func (g *group) names() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members
}

// turn is the lease of one queue, taken only if this Curfew has less than its share. It implements keeper.Lease, for one
// keeper at a time.
type turn struct {
	*lease.Lease
	group *group

	// Guarded by group.mu.
	held     bool
	free     int  // how often in a row it was found free
	unwanted bool // it was taken beyond the share because nobody else wanted it
}

// Acquire implements keeper.Lease.
func (t *turn) Acquire(ctx context.Context) (holder string, held bool, err error) {
	if !t.reserve() {
		holder, err = t.Holder(ctx)
		t.peeked(err == nil && holder == "")
		return holder, false, err
	}
	holder, held, err = t.Lease.Acquire(ctx)
	t.settle(held, err)
	return holder, held, err
}

// Release implements keeper.Lease.
func (t *turn) Release(ctx context.Context) error {
	t.settle(false, nil)
	return t.Lease.Release(ctx)
}

// reserve reports whether this Curfew may have the lease.
func (t *turn) reserve() bool {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	if _, taken := t.group.taken[t]; !taken && len(t.group.taken) >= t.group.shareLocked() {
		if t.free < unwantedAfter {
			return false
		}
		t.unwanted = true
	}
	t.group.taken[t] = struct{}{}
	return true
}

func (t *turn) peeked(free bool) {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	if t.free++; !free {
		t.free = 0
	}
}

// settle notes the result of a try. An instance that has a lease and cannot ask still has it.
func (t *turn) settle(held bool, err error) {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	if err == nil {
		t.held, t.free = held, 0
	}
	if !t.held {
		t.unwanted = false
		delete(t.group.taken, t)
	}
}

func (t *turn) isHeld() bool {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	return t.held
}

// mayYield reports whether another Curfew may want it.
func (t *turn) mayYield() bool {
	t.group.mu.Lock()
	defer t.group.mu.Unlock()
	return t.held && !t.unwanted
}

// runGroup beats until ctx ends, and gives queues to other Curfews.
func (p *Primary) runGroup(ctx context.Context) {
	for deadline.Sleep(ctx, beatEvery) {
		p.beat(ctx)
		if p.group.surplus() > 0 {
			p.yieldOne()
		}
	}
}

// beat announces that this Curfew lives, and takes in what the others report.
func (p *Primary) beat(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	var v lease.View
	var err error
	shared := p.group.shared()
	if shared != nil {
		v, err = shared.Beat(limited, p.report())
	} else { // only to find out whether Redis answers
		v.Members = []string{p.name}
		err = p.redis.Time(limited).Err()
	}
	if ctx.Err() != nil {
		return
	}
	news, turned, lost := p.group.see(v, err)
	switch {
	case news && err != nil:
		p.log.Warn("Redis does not answer: queues already kept stay kept; no new ones are taken over", zap.Error(err))
	case news:
		p.log.Info("Redis answers again")
	}
	if turned {
		deadline.Wake(p.looks)
	}
	if !lost || shared == nil {
		return
	}
	if _, err := shared.SetPause(ctx, lease.Paused); err != nil {
		p.log.Warn("cannot tell the others that everything is paused", zap.Error(err))
	}
}

// yieldOne gives one queue to another Curfew: the queue with the fewest messages held.
func (p *Primary) yieldOne() {
	p.mu.Lock()
	defer p.mu.Unlock()
	var least *queue
	held := 0
	for _, q := range p.queues {
		if q.stop == nil || q.keeper == nil || q.yielding || !q.turn.mayYield() {
			continue
		}
		if n := q.keeper.Status().Held; least == nil || n < held {
			least, held = q, n
		}
	}
	if least != nil {
		p.log.Info("another Curfew has fewer queues: giving one to it", zap.String("queue", least.name), zap.Int("held", held))
		least.yielding = true
		least.end()
	}
}

// leaveGroup announces that this Curfew ends, so that the others need not wait to notice.
func (p *Primary) leaveGroup() {
	shared := p.group.shared()
	if shared == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	if err := shared.Leave(ctx); err != nil {
		p.log.Warn("cannot tell the others that this Curfew ends; they will notice", zap.Error(err))
	}
}

// pausedCode is the state of a queue that is not kept since an operator has paused everything.
const pausedCode = "paused"

// ErrNotPaused: there is nothing to resume.
var ErrNotPaused = errors.New("nothing is paused")

// errNotJoined: Redis cannot be told yet.
var errNotJoined = errors.New("it is not known yet which cluster this is")

// Pause has every Curfew of the virtual host give back everything in order, and keep nothing until Resume. Observing goes on, since it touches
// no message. Redis remembers that; without Redis, it lasts until this Curfew ends. Calling it again does no harm.
func (p *Primary) Pause(ctx context.Context) error {
	_, err := p.turn(ctx, lease.Paused)
	return err
}

// Resume ends Pause, for every Curfew. Error: ErrNotPaused, or that Redis does not answer.
func (p *Primary) Resume(ctx context.Context) error {
	last, err := p.turn(ctx, lease.Resumed)
	if err == nil && last != lease.Paused {
		return ErrNotPaused
	}
	return err
}

// turn pauses or resumes everything, and returns which of them was last done.
func (p *Primary) turn(ctx context.Context, to lease.Pause) (last lease.Pause, err error) {
	if p.redis != nil {
		shared := p.group.shared()
		if shared == nil {
			return "", errNotJoined
		}
		if last, err = shared.SetPause(ctx, to); err != nil {
			return "", err
		}
	}
	if p.group.setPaused(to == lease.Paused) {
		last = lease.Paused
	}
	deadline.Wake(p.looks)
	return last, nil
}
