package broker

import (
	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

const (
	// maxDeaths is how often a message may be dead-lettered without a rejection by a
	// consumer between. After that it is parked.
	maxDeaths = 16
	// maxCopies is how many copies dead-lettering may make of one message by and by,
	// before those that would be copied once more are parked. The copies of a message's
	// first death count, and are not bounded.
	maxCopies = 4096
	// copiesHeader tells how many copies dead-lettering has made of a message since a
	// consumer rejected it last; it is there if there are several.
	copiesHeader = "x-dead-letter-copies"
	// scarceTargets is how many queues a letter may go to while memory is low. One with
	// more waits in line.
	scarceTargets = 16
)

// address finds the queues of one dead letter and has its copy stored. false: it has to
// wait for memory.
func (s *step) address(x *crossing, at int) bool {
	x.action = Dropped
	src := s.b.store.View(store.Pos(x.settled.Pos))
	s.trace(x, src)
	if !x.waits(x.from) && !x.tried {
		if done, ok := s.addressFresh(x, at, src); done {
			return ok
		}
	}
	p, err := amqp.ParseProperties(src.Properties, stored)
	if err != nil {
		s.b.log.Error("dead letter has unreadable properties and loses them", x.from.fields(err)...)
		if p = (amqp.Properties{}); x.settled.Flags&queue.Durable != 0 {
			p.DeliveryMode = 2
		}
	}
	if !x.set.deadLetter {
		s.b.counters.expiredDropped.Add(1)
		describe(s, x, p.MessageID, "", nil)
	} else if !s.addressAny(x, at, src, &p) {
		return false
	}
	if owesReceipt(&x.settled) && !x.tried {
		s.giveReceipt(x, at, &p)
	}
	return true
}

// addressAny is address for any dead letter.
func (s *step) addressAny(x *crossing, at int, src store.Message, p *amqp.Properties) bool {
	q, counters := x.from, &s.b.counters
	died := x.settled.Flags&queue.Died != 0
	oneKey := x.settled.Flags&queue.OneKey != 0
	deaths := recordDeath(p, death{
		queue: q.name, reason: reasonName(x.settled.Reason), at: s.b.wallSeconds(x.at),
		exchange: string(src.Exchange), keys: originalKeys(src.RoutingKey, p.Headers, oneKey),
	}, died)
	key := src.RoutingKey
	if x.set.ownKey {
		key, oneKey = []byte(x.set.dlk), true
	}
	targets, routed := s.targetsOf(x, key, p.Headers, oneKey)
	if s.scarce(targets) {
		return false
	}
	if x.set.explains(x.settled.Reason) {
		explain(p.Headers, &x.settled)
	}
	if cut := withoutCycles(targets, deaths); len(cut) < len(targets) {
		counters.cycles.Add(uint64(len(targets) - len(cut)))
		q.tellCycle(x.set)
		targets = cut
	}
	bounded := countCopies(p.Headers, deaths, len(targets), died)
	if bounded != "" {
		counters.bounded.Add(1)
		q.tellBounded(x.set, bounded)
	}
	switch {
	case !routed && x.waits(q):
		x.missing = true
		describe(s, x, p.MessageID, string(key), nil)
		if !x.tried {
			counters.deadLettered[x.settled.Reason].Add(1)
		}
		return true
	case routed && bounded == "":
		if len(targets) > 0 {
			x.action = DeadLettered
		}
	case cycles(UndeliverableQueue, deaths):
		targets = nil
	default:
		if targets = s.park(x); x.missing {
			return true
		}
	}
	describe(s, x, p.MessageID, string(key), targets)
	if len(targets) == 0 {
		counters.deadLettersLost.Add(1)
		return true
	}
	if !x.tried {
		counters.deadLettered[x.settled.Reason].Add(1)
	}
	if targets = x.untried(targets); x.waits(q) {
		if targets = x.accepting(targets); len(targets) == 0 {
			return true
		}
	}
	it := item{firm: x.waits(q), priority: p.Priority, ttlMillis: -1}
	it.message.Flags = queue.Died | x.settled.Flags&queue.Hidden
	if p.DeliveryMode == 2 {
		it.message.Flags |= queue.Durable
	}
	if oneKey {
		it.message.Flags |= queue.OneKey
	}
	s.turns.props = p.Append(s.turns.props[:0])
	s.send(x, at, targets, &it, store.Message{
		Exchange: []byte(x.set.dlx), RoutingKey: key, Properties: s.turns.props, Body: src.Body,
	})
	return true
}

// scarce says whether memory is too low for one more message in so many queues.
func (s *step) scarce(targets []target) bool {
	return len(targets) > scarceTargets && s.b.gate.memoryLow()
}

// countCopies writes into the headers of a dead letter how many copies there are of it, and
// says why it may go no further, "" if it may: it has died too often, or would be
// one of too many. deaths is its history with the present death in front.
func countCopies(headers amqp.Table, deaths []any, targets int, died bool) (bounded string) {
	copies := int64(1)
	if n, ok := headers[copiesHeader].(int64); ok && died && n > 0 {
		copies = n
	}
	since := 0
	for ; since < len(deaths); since++ {
		if entry, _ := deaths[since].(amqp.Table); entry["reason"] == "rejected" {
			break
		}
	}
	if since == 0 { // a consumer has decided
		copies = 1
	}
	switch {
	case targets == 0: // it will be parked
	case since > maxDeaths:
		bounded = "they have been dead-lettered too often without a rejection"
	case copies > 1 && targets > 1 && copies > int64(maxCopies/targets):
		bounded = "dead-lettering would make too many copies of them"
	default:
		copies *= int64(targets)
	}
	if delete(headers, copiesHeader); copies > 1 {
		headers[copiesHeader] = copies
	}
	return bounded
}

// targetsOf routes a dead letter by the headers that it has now, and by the keys in CC and
// BCC unless it goes by its key alone (RabbitMQ: rabbit_dead_letter). RabbitMQ 4 does not
// show x-death itself to a headers exchange, 3.10 does, as here. routed is false when the
// exchange is missing or leads nowhere.
func (s *step) targetsOf(x *crossing, key []byte, headers amqp.Table, oneKey bool) (targets []target, routed bool) {
	t, keys := &s.turns, !oneKey && (headers["CC"] != nil || headers["BCC"] != nil)
	t.targets.reset()
	found, err := t.routes.find(x.from.vh, []byte(x.set.dlx), key, byBroker, messageHeaders{table: headers}, keys)
	if err != nil {
		return nil, false
	}
	t.targets.addAll(found) // which outlast the next find, of a receipt's queue
	return t.targets.list, len(found) > 0
}

// park returns the queue for messages that cannot be routed, or none where they are to be
// dropped. If it cannot be made, as its definition cannot be saved, the message stays with
// its source for another try (retained).
func (s *step) park(x *crossing) []target {
	vh := x.from.vh
	if s.b.opts.Unroutable == Drop {
		return nil
	}
	if s.now < vh.parkAgain.Load() {
		x.missing = x.queued
		return nil
	}
	q, err := vh.DeclareQueue(nil, UndeliverableQueue, QueueDeclare{Durable: true})
	if err != nil {
		s.b.log.Error("the queue for undeliverable messages cannot be made: they stay where they are; make room on the disk",
			zap.String("vhost", vh.name), zap.Error(err))
		vh.parkAgain.Store(s.now + retryFirst)
		x.missing = x.queued
		return nil
	}
	x.action = Parked
	s.b.counters.parked.Add(1)
	return append(s.turns.targets.list[:0], target{q, -1})
}

// fields say which queue a log entry is about.
func (q *Queue) fields(err error) []zap.Field {
	return []zap.Field{zap.String("vhost", q.vh.name), zap.String("queue", q.name), zap.Error(err)}
}

// tellBounded logs the first message of the queue that went no further.
func (q *Queue) tellBounded(set *settings, why string) {
	if !q.boundTold.Swap(true) {
		q.vh.b.log.Warn("dead letters are parked in "+UndeliverableQueue+": "+why+"; see where the dead-letter exchanges on their way lead",
			zap.String("vhost", q.vh.name), zap.String("queue", q.name), zap.String("dead_letter_exchange", set.dlx))
	}
}

// tellCycle logs the queue's first cycle.
func (q *Queue) tellCycle(set *settings) {
	if !q.cycleTold.Swap(true) {
		q.vh.b.log.Warn("dead-letter cycle without a rejection: messages that come back to a queue they died in are dropped",
			zap.String("vhost", q.vh.name), zap.String("queue", q.name), zap.String("dead_letter_exchange", set.dlx))
	}
}
