package rabbitmq

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/delay"
	"curfew/monitor/rabbitmq/keeper"
	"curfew/monitor/rabbitmq/lease"
	"curfew/monitor/rabbitmq/observe"
)

const (
	// refreshEvery is how often the queues are looked at when RabbitMQ reports changes, pollEvery when it does not.
	refreshEvery = 30 * time.Second
	pollEvery    = 5 * time.Second
	// lookAgain is how long after a change the queues are looked at once more, and lookTimes how often: RabbitMQ reports the policies
	// that were in force before for up to five seconds, and of an idle quorum queue in a cluster for up to 14 (3.10.8).
	lookAgain = 6 * time.Second
	lookTimes = 3
	// settle is how long changes are collected, and the shortest time between two inventories.
	settle = 200 * time.Millisecond
	// restShare is how many times as long as an inventory took none is taken without an event, and no event has another one taken up to lookAgain, or for
	// as long as it took if that is more: each is work for RabbitMQ, in proportion to all queues, and queues for replies may come and go all the time.
	restShare = 4
	// lookTimeout is for one inventory.
	lookTimeout = time.Minute
	// unknownFor is how long a queue stays kept, by what was last known of it, while RabbitMQ does not say how it is declared, and how long a new
	// one is looked at again and again.
	unknownFor = time.Minute
)

// runInventory takes inventories until ctx ends, and starts and stops keepers by what they find.
func (p *Primary) runInventory(ctx context.Context, running *sync.WaitGroup) {
	polled := make(chan struct{})
	running.Go(func() {
		if err := p.rabbitmq.Events(ctx, p.event); errors.Is(err, cluster.ErrNoEvents) {
			p.log.Info("queues are polled", zap.Duration("every", pollEvery), zap.Error(err))
			close(polled)
		}
	})
	every, again := refreshEvery, 0
	timer, joins := time.NewTimer(0), time.NewTicker(identifyAgain)
	defer timer.Stop()
	defer joins.Stop()
	changes, rested := p.changes, (<-chan time.Time)(nil)
	for {
		select {
		case <-timer.C:
		case <-changes:
			again = lookTimes
		case <-p.looks:
			again = lookTimes
		case <-rested:
			changes = p.changes
			continue
		case <-joins.C:
			if p.identity.err == nil || !p.join(ctx) { // only this goroutine changes it
				continue
			}
		case <-polled:
			every, polled = pollEvery, nil
		case <-ctx.Done():
			return
		}
		began := time.Now()
		unclear := p.take(ctx, running)
		took := time.Since(began)
		next := max(every, min(restShare*took, inventoryOld-took-wantedFor)) // it is not to be old
		if again > 0 || unclear {
			again = max(again-1, 0)
			next = min(every, lookAgain)
		}
		changes, rested = nil, time.After(min(restShare*took, max(took, lookAgain)))
		if !deadline.Sleep(ctx, settle) {
			return
		}
		timer.Reset(next)
	}
}

// event takes in an event of RabbitMQ.
func (p *Primary) event(e cluster.Event) {
	tell := func(what keeper.Event) {
		p.mu.Lock()
		q := p.queues[e.Queue]
		p.mu.Unlock()
		if q != nil {
			q.tell(what)
		}
	}
	switch e.Kind {
	case cluster.ConsumerCreated:
		tell(keeper.Event{Kind: keeper.ConsumerCame, ConsumerTag: e.ConsumerTag})
	case cluster.QueueDeleted:
		tell(keeper.Event{Kind: keeper.QueueDeleted})
		deadline.Wake(p.changes)
	case cluster.BindingChanged:
		if o, _ := p.observing.now(); o != nil {
			deadline.Wake(p.changes)
		}
	default:
		deadline.Wake(p.changes)
	}
}

// look waits for an inventory that begins after the call.
func (p *Primary) look(ctx context.Context) error {
	answer := make(chan error, 1)
	p.mu.Lock()
	p.waiting = append(p.waiting, answer)
	p.mu.Unlock()
	deadline.Wake(p.looks)
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes an inventory. It reports whether another one will soon say more.
func (p *Primary) take(ctx context.Context, running *sync.WaitGroup) (unclear bool) {
	p.mu.Lock()
	waiting := p.waiting
	p.waiting = nil
	p.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	names, _ := p.watch.Names()
	i, err := p.rabbitmq.Inventory(limited, names, p.watch.Measured(p.vhost))
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		p.join(ctx)
	}
	var x *topology
	if err == nil {
		x = p.observing.topologyFor(limited, i)
	}
	p.mu.Lock()
	if p.failing.note(err) && err != nil {
		p.log.Warn("cannot list the queues of RabbitMQ: queues already kept stay kept", zap.Error(err))
	}
	if err == nil {
		if len(i.Unread) > 0 && (p.inventory == nil || len(p.inventory.Unread) == 0) {
			p.log.Warn("something that RabbitMQ answers cannot be read", zap.Strings("what", i.Unread))
		}
		p.inventory, p.topology, p.lookedAt = i, x, time.Now()
		unclear = p.applyLocked(ctx, running, x)
	}
	p.mu.Unlock()
	for _, answer := range waiting {
		answer <- err
	}
	if err == nil {
		p.observing.show(i, x)
	}
	return unclear
}

// applyLocked decides on each queue by the inventory. It reports whether RabbitMQ has yet to say how one of them is declared.
func (p *Primary) applyLocked(ctx context.Context, running *sync.WaitGroup, x *topology) (unclear bool) {
	p.updateSeenLocked(p.observing.statesLocked())
	if p.redis != nil && p.space == (lease.Space{}) {
		return false // it is not known yet where leases are
	}
	found := make(map[string]bool)
	for at := range p.inventory.Queues {
		q := &p.inventory.Queues[at]
		rule, watched := p.rule(q.Name)
		if !watched || !rule.Mode.Holds() {
			continue
		}
		found[q.Name] = true
		delete(p.deleted, q.Name)
		k := p.queues[q.Name]
		if k == nil {
			p.numbers++
			k = newQueueLocked(p, q.Name, rule, p.numbers)
			p.queues[q.Name] = k
		}
		_, limited := q.TTLMillis()
		tapped := limited && k.stop == nil && x != nil && x.unknown == nil && observe.Untappable(p.inventory, q, x.exchanges, x.bindings) == "" // a tap sees all that enters it
		unclear = k.decideLocked(q, p.inventory.Server, tapped) || unclear
		k.lookForStrandedLocked(q)
		k.messages = q.Ready + q.Unacked + max(q.Delayed, 0)
	}
	maps.DeleteFunc(p.deleted, func(_ string, d deletion) bool { return time.Since(d.at) > deletedFor })
	paused, wanted := p.group.isPaused(), 0
	for name, k := range p.queues {
		if !found[name] {
			if k.rule.Mode.Waits() && k.decision.Verdict == cluster.Kept {
				p.deleted[name] = deletion{time.Now(), k.messages}
				p.log.Warn("a delay queue was deleted, and what waited in it is gone", zap.String("queue", name), zap.Int64("messages", k.messages))
			}
			k.stopLocked(nil)
			delete(p.queues, name)
			continue
		}
		if k.decision.Verdict == cluster.Kept && !paused {
			wanted++
		}
	}
	p.group.setWanted(wanted)
	for _, k := range p.queues {
		k.startOrStopLocked(ctx, running, paused)
	}
	return unclear
}

// decideLocked takes in what an inventory says about the queue. exact reports whether RabbitMQ may be left to expire a
// queue with one time to live: no keeper runs, and a tap sees all that enters it. While a keeper runs, it judges by itself
// whatever changes from moment to moment. A decision stays as it was while the facts cannot be known for a moment: unclear is that moment.
func (q *queue) decideLocked(found *cluster.Queue, s cluster.Server, exact bool) (unclear bool) {
	if others := q.othersLocked(othersAt(found)); others != q.facts.Others {
		q.facts.Others = others
		q.factsChangedLocked()
	}
	q.noteSharedLocked(found)
	d := cluster.Decide(found, q.rule, s, q.p.seen.known(q.name), exact)
	if d.Code != cluster.CannotBeKnown {
		q.unknownAt = time.Time{}
	} else if q.unknownAt.IsZero() {
		q.unknownAt = time.Now()
	}
	unclear = !q.unknownAt.IsZero() && time.Since(q.unknownAt) < unknownFor
	moment := d.Code == cluster.TooMany || d.Code == cluster.NotRunning || d.Code == cluster.FewDeadlines
	if q.stop != nil && (moment || unclear) {
		return unclear
	}
	q.decision = d
	_, deadLettered := found.DeadLetterExchange()
	q.deadLettered.Store(deadLettered)
	if facts := factsOf(found, q.rule, s, q.facts.Others); facts != q.facts {
		q.facts = facts
		q.factsChangedLocked()
	}
	return unclear
}

func (q *queue) factsChangedLocked() {
	if q.stop != nil {
		q.tell(keeper.Event{Kind: keeper.FactsChanged})
	}
}

// startOrStopLocked runs a keeper if the queue is to be kept, and none otherwise.
func (q *queue) startOrStopLocked(ctx context.Context, running *sync.WaitGroup, paused bool) {
	wanted := q.decision.Verdict == cluster.Kept && !paused
	if wanted && q.stop == nil {
		q.startLocked(ctx, running)
	} else if !wanted {
		q.stopLocked(notWanted(q.decision))
	}
}

// notWanted is why a keeper ends by a decision; nil: not because of the queue.
func notWanted(d cluster.Decision) error {
	if d.Verdict != cluster.Refused {
		return nil
	}
	code := keeper.Settings
	switch d.Code {
	case cluster.CannotBeKnown:
		code = keeper.Unknown
	case cluster.IsPolled, cluster.ExclusiveConsumer:
		code = keeper.Consumer
	}
	return &keeper.NotWanted{Code: code, Reason: d.Reason}
}

// othersAt reports whether anybody but Curfews consumes from the queue. Only one of them has its lease: whatever else they consume belongs to
// one that is gone or hangs, or that does not share this one's Redis (noteSharedLocked).
//
// A consumer of AMQP 1.0 has a number as its tag, which does not say whose it is: its priority does.
func othersAt(q *cluster.Queue) keeper.Presence {
	switch {
	case q.Unknown&cluster.UnknownConsumers != 0:
		return keeper.Unlisted
	case slices.ContainsFunc(q.Attached, func(c cluster.Consumer) bool {
		return keeper.OfTag(c.Tag) == "" && c.Priority != float64(delay.LinkPriority)
	}):
		return keeper.Present
	}
	return keeper.Absent
}

// othersLocked takes in what the list of consumers shows. A list that cannot be read was to be seen a moment ago: RabbitMQ is slow to answer while it
// misses a node.
func (q *queue) othersLocked(seen keeper.Presence) keeper.Presence {
	switch {
	case seen != keeper.Unlisted:
		q.listedAt = time.Now()
	case time.Since(q.listedAt) < unknownFor:
		return keeper.Unclear
	}
	return seen
}

// sharedFor is how long another Curfew has to consume from a queue whose lease is here until that is a condition: one that hangs, or whose
// node died, is in RabbitMQ's list for a while.
const sharedFor = 30 * time.Second

// noteSharedLocked notes which other Curfew consumes from the queue while this one has the lease.
func (q *queue) noteSharedLocked(found *cluster.Queue) {
	other := ""
	if q.stop != nil && (q.turn == nil || q.turn.isHeld()) {
		for _, c := range found.Attached {
			if name := keeper.OfTag(c.Tag); name != "" && name != q.p.name {
				other = name
			}
		}
	}
	if other == "" || q.sharedWith == "" {
		q.sharedAt = time.Now()
	}
	q.sharedWith = other
}

// factsOf returns the facts of a queue for its keeper.
func factsOf(q *cluster.Queue, rule cluster.Rule, s cluster.Server, others keeper.Presence) keeper.Facts {
	asked := *q
	if asked.Type == cluster.UnknownType {
		asked.Type = rule.Assume
	}
	f := keeper.Facts{Type: asked.Type, Family: s.Family(), TTL: -1, Others: others}
	if ttl, ok := q.TTLMillis(); ok {
		f.TTL = time.Duration(ttl) * time.Millisecond
	}
	if limit, ok := asked.DeliveryLimit(s.Family()); ok {
		f.DeliveryLimit = int(limit)
	}
	if timeout, ok := q.Shortest("consumer-timeout"); ok {
		f.ConsumerTimeout = time.Duration(timeout) * time.Millisecond
	}
	return f
}
