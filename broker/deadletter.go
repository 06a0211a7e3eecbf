package broker

import (
	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// deadLetter is a message that has left its queue and is on its way to the
// queue's dead-letter exchange. Until it is there its source keeps its reference
// to the store.
type deadLetter struct {
	from    *Queue
	set     *settings // of from when it left
	settled queue.Settled
	path    Path // of an expiry
	queued  bool // it stood in from; else a full queue refused it
	unsaved bool // its new place is in memory only: the journal keeps the old one
	result  int  // index of the answer to fill in, of Expire or Reschedule; <0 none
	action  Action

	// Of a queue that dead-letters at least once:
	at      int64    // Unix µs: when it died
	tried   bool     // before, and not every target took it
	done    []uint64 // incarnations of the queues that have it
	missing bool     // it has no target now

	id, key  []byte // what its record says of it (Options.OnExpired)
	exchange string
	to       []string
	trace    TraceContext
}

// firm says that it may not go on before all its targets take it.
func (d *deadLetter) firm() bool { return d.set.atLeastOnce && d.queued && d.from.delays == nil }

// grave is the scratch for routing a batch of dead letters.
type grave struct {
	routes  routes
	batch   batch
	moves   []move
	targets []target
	answers []ExpireResult // of the Expire or Reschedule under way

	props, headers, exchange, key []byte // of the dead letter under way
}

// move is one dead letter's way: out of a queue, into others. It holds a
// reference of its own to the new message, and to the receipt: their consumers may
// be done with them before the move is journaled.
type move struct {
	pos     store.Pos // 0: it goes nowhere
	receipt store.Pos // of its expiry, which goes with it; 0: none
	into    []store.Enqueue
	refused bool // by a target
}

// entered notes that the dead letter of a move stands in a queue.
func (g *grave) entered(at int, e store.Enqueue) {
	g.moves[at].into = append(g.moves[at].into, e)
}

// bury routes the dead letters collected so far: every one is published to the
// queues its dead-letter exchange leads to, one lock per queue for the whole
// batch, then its removal and arrival are journaled as one. What that expires or
// overflows in turn is left in s.dead. No lock is held.
func (s *step) bury() {
	s.readClock()
	s.dead, s.burying = s.burying[:0], s.dead
	g := &s.grave
	for len(g.moves) < len(s.burying) {
		g.moves = append(g.moves, move{})
	}
	for i := range s.burying {
		if d := &s.burying[i]; d.from.delays != nil {
			s.activate(d, i)
		} else {
			s.inter(d, i)
		}
	}
	g.batch.flush(s)
	for i := range s.burying {
		s.settleMove(&s.burying[i], &g.moves[i])
	}
	s.b.feed.push(s.events)
	clear(s.burying)
	s.events, s.burying = s.events[:0], s.burying[:0]
}

// inter finds the queues of one dead letter and adds it to the batch.
func (s *step) inter(d *deadLetter, at int) {
	d.action = Dropped
	q, counters := d.from, &s.b.counters
	src := s.b.store.View(store.Pos(d.settled.Pos))
	s.trace(d, src)
	if !d.firm() && !d.tried && s.layFresh(d, at, src) {
		return
	}
	p, err := amqp.ParseProperties(src.Properties, stored)
	if err != nil {
		s.b.log.Error("dead letter has unreadable properties and loses them", zap.String("queue", q.name), zap.Error(err))
		if p = (amqp.Properties{}); d.settled.Flags&queue.Durable != 0 {
			p.DeliveryMode = 2
		}
	}
	if d.set.deadLetter {
		s.lay(d, at, src, &p)
	} else {
		counters.expiredDropped.Add(1)
		describe(s, d, p.MessageID, "", nil)
	}
	if owesReceipt(&d.settled) && !d.tried {
		s.giveReceipt(d, at, &p)
	}
}

// lay adds a dead letter to the queues its exchange leads to.
func (s *step) lay(d *deadLetter, at int, src store.Message, p *amqp.Properties) {
	q, counters := d.from, &s.b.counters
	if d.at == 0 {
		d.at = s.now
	}
	died := d.settled.Flags&queue.Died != 0
	keys := d.set.deadLetterKeys(src.RoutingKey, p)
	deaths := recordDeath(p, death{
		queue: q.name, reason: reasonName(d.settled.Reason), at: d.at / second,
		exchange: string(src.Exchange), keys: originalKeys(src.RoutingKey, p.Headers),
	}, died)
	if d.set.hasSubqueue {
		explain(p.Headers, &d.settled)
	}
	targets, routed := s.targets(d, keys, src.Properties)
	if cut := withoutCycles(targets, deaths); len(cut) < len(targets) {
		counters.cycles.Add(uint64(len(targets) - len(cut)))
		q.tellCycle(d.set)
		targets = cut
	}
	if !routed && d.firm() {
		d.missing = true
		return
	} else if !routed && !cycles(UndeliverableQueue, deaths) {
		targets = s.park(d)
	} else if len(targets) > 0 {
		d.action = DeadLettered
	}
	describe(s, d, p.MessageID, keys[0], targets)
	if len(targets) == 0 {
		counters.deadLettersLost.Add(1)
		return
	}
	if !d.tried {
		counters.deadLettered[d.settled.Reason].Add(1)
	}
	targets = d.untried(targets)
	it := item{firm: d.firm(), priority: p.Priority, ttlMillis: -1}
	it.message.Flags = queue.Died | d.settled.Flags&queue.Hidden
	if p.DeliveryMode == 2 {
		it.message.Flags |= queue.Durable
	}
	s.grave.props = p.Append(s.grave.props[:0])
	s.send(d, at, targets, &it, store.Message{
		Exchange: []byte(d.set.dlx), RoutingKey: []byte(keys[0]), Properties: s.grave.props, Body: src.Body,
	})
}

// send copies a message that moves into the store and adds it to its queues'
// lanes; it is what is known of it so far.
func (s *step) send(d *deadLetter, at int, targets []target, it *item, m store.Message) {
	g := &s.grave
	pos, err := s.b.store.PutMoved(m, anyPersists(targets, it.message.Flags), 1+len(targets))
	inMemory := err != nil
	if err != nil {
		// Not even the reserve has room. The dead letter goes on in memory, and its
		// original stays in the journal: a restart would dead-letter it again.
		s.b.log.Error("dead letter is kept in memory only", zap.String("queue", d.from.name), zap.Error(err))
		d.unsaved = true
		pos, err = s.b.store.PutMoved(m, false, 1+len(targets))
	}
	if err != nil { // its death headers make it larger than a record can be
		s.b.log.Error("dead letter is lost", zap.String("queue", d.from.name), zap.Error(err))
		s.b.counters.deadLettersLost.Add(1)
		d.action, d.unsaved = Dropped, false
		return
	}
	g.moves[at].pos = pos
	it.message.Pos, it.message.Bytes, it.move = uint64(pos), d.settled.Bytes, at
	if !inMemory {
		g.batch.addAll(targets, it)
		return
	}
	it.message.Flags &^= queue.Durable
	for _, t := range targets {
		g.batch.add(t, it)
	}
}

// settleMove journals a dead letter's move and reports it.
func (s *step) settleMove(d *deadLetter, m *move) {
	if m.refused || d.missing {
		s.keep(d, m)
	} else if d.queued && !d.unsaved {
		s.b.store.Moved(d.from.settleRecord(&d.settled), m.into)
	} else {
		s.b.store.Enqueued(m.into)
	}
	if !d.queued {
		s.b.store.Release(store.Pos(d.settled.Pos))
	}
	if d.tried && d.action != Retained {
		d.from.retrySoon(s)
	}
	if m.pos != 0 {
		s.b.store.Release(m.pos)
	}
	if m.receipt != 0 {
		s.b.store.Release(m.receipt)
	}
	m.pos, m.receipt, m.into, m.refused = 0, 0, m.into[:0], false
	if d.result >= 0 {
		s.grave.answers[d.result].Action = d.action
	}
	if d.settled.Reason == queue.Expired && d.from.delays == nil && !d.tried {
		s.tellExpired(d.from, &d.settled, d.path, d.action)
		s.noteBuried(d)
	}
}

// targets routes a dead letter by each of its keys. routed is false when the
// exchange is missing or leads nowhere.
func (s *step) targets(d *deadLetter, keys []string, properties []byte) (targets []target, routed bool) {
	g := &s.grave
	view, _ := amqp.ViewProperties(properties)
	g.targets = g.targets[:0]
	for _, key := range keys {
		found, err := g.routes.find(d.from.vh, []byte(d.set.dlx), []byte(key), true, view.Headers, false)
		if err != nil {
			return nil, false
		}
		for _, t := range found {
			g.targets = addTarget(g.targets, t)
		}
	}
	return g.targets, len(g.targets) > 0
}

// park returns the queue for dead letters that cannot be routed, or none where
// they are to be dropped.
func (s *step) park(d *deadLetter) []target {
	if s.b.opts.Unroutable == Drop {
		return nil
	}
	q, err := d.from.vh.DeclareQueue(nil, UndeliverableQueue, QueueDeclare{Durable: true})
	if err != nil { // not saved: it is there all the same
		s.b.log.Error("the queue for undeliverable dead letters is not durable yet", zap.Error(err))
		if q, err = d.from.vh.Queue(UndeliverableQueue); err != nil {
			return nil
		}
	}
	d.action = Parked
	s.b.counters.parked.Add(1)
	return append(s.grave.targets[:0], target{q, -1})
}

// tellCycle logs the queue's first cycle.
func (q *Queue) tellCycle(set *settings) {
	if !q.cycleTold.Swap(true) {
		q.vh.b.log.Warn("dead-letter cycle without a rejection: messages that come back to a queue they died in are dropped",
			zap.String("vhost", q.vh.name), zap.String("queue", q.name), zap.String("dead_letter_exchange", set.dlx))
	}
}
