package forward

import (
	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/queueargs"
	"curfew/broker/internal/topology"
	"curfew/broker/queue"
	"curfew/broker/store"
)

const (
	// scarceTargets is how many queues a letter may go to while memory is low. One with
	// more waits in line.
	scarceTargets = 16
)

// address finds the queues of one dead letter and has its copy stored. false: it has to
// wait for memory.
func (t *turn) address(x *crossing, at int) bool {
	x.action = deadline.Dropped
	src := t.f.env.Store.View(store.Pos(x.Settled.Pos))
	t.trace(x, src)
	if !x.Waits() && !x.Tried {
		if done, ok := t.addressFresh(x, at, src); done {
			return ok
		}
	}
	p, err := amqp.ParseProperties(src.Properties, message.StoredLimits)
	if err != nil {
		t.f.log.Error("dead letter has unreadable properties and loses them", t.fields(x, err)...)
		if p = (amqp.Properties{}); x.Settled.Flags&queue.Durable != 0 {
			p.DeliveryMode = 2
		}
	}
	if !x.Set.DeadLetters {
		t.f.env.Counters.ExpiredDropped.Add(1)
		describe(t.s, x, p.MessageID, "", nil)
	} else if !t.addressAny(x, at, src, &p) {
		return false
	}
	x.owes = delivery.OwesReceipt(&x.Settled) && !x.Tried
	return true
}

// addressAny is address for any dead letter.
func (t *turn) addressAny(x *crossing, at int, src store.Message, p *amqp.Properties) bool {
	q, counters := x.from, &t.f.Counters
	died := x.Settled.Flags&queue.Died != 0
	oneKey := x.Settled.Flags&queue.OneKey != 0
	deaths := message.RecordDeath(p, message.Death{
		Queue: q.Name, Reason: message.ReasonName(x.Settled.Reason), At: t.f.env.Clock.WallSeconds(x.At),
		Exchange: string(src.Exchange), Keys: message.OriginalKeys(src.RoutingKey, p.Headers, oneKey),
	}, died)
	key := src.RoutingKey
	if x.Set.HasDeadLetterKey {
		key, oneKey = []byte(x.Set.DeadLetterKey), true
	}
	targets, routed := t.targetsOf(x, key, p.Headers, oneKey)
	if t.scarce(targets) {
		return false
	}
	if x.Set.SetsDeadLetterReason(x.Settled.Reason) {
		message.SetDeadLetterReason(p.Headers, &x.Settled)
	}
	if cut := withoutCycles(targets, deaths); len(cut) < len(targets) {
		counters.Cycles.Add(uint64(len(targets) - len(cut)))
		t.logCycle(x)
		targets = cut
	}
	bounded := message.CountCopies(p.Headers, deaths, len(targets), died)
	if bounded != "" {
		counters.Bounded.Add(1)
		t.logBounded(x, bounded)
	}
	switch {
	case !routed && x.Waits():
		x.missing = true
		describe(t.s, x, p.MessageID, string(key), nil)
		if !x.Tried {
			counters.DeadLettered[x.Settled.Reason].Add(1)
		}
		return true
	case routed && bounded == "":
		if len(targets) > 0 {
			x.action = deadline.DeadLettered
		}
	case message.Cycles(queueargs.UndeliverableQueue, deaths):
		targets = nil
	default:
		if targets = t.park(x); x.missing {
			return true
		}
	}
	describe(t.s, x, p.MessageID, string(key), targets)
	if len(targets) == 0 {
		t.f.env.Counters.DeadLettersLost.Add(1)
		return true
	}
	if !x.Tried {
		counters.DeadLettered[x.Settled.Reason].Add(1)
	}
	if targets = x.untried(targets); x.Waits() {
		if targets = x.accepting(targets); len(targets) == 0 {
			return true
		}
	}
	it := delivery.Item{AtLeastOnce: x.Waits(), Priority: p.Priority, TtlMillis: -1}
	it.Message.Flags = queue.Died | x.Settled.Flags&queue.Hidden
	if p.DeliveryMode == 2 {
		it.Message.Flags |= queue.Durable
	}
	if oneKey {
		it.Message.Flags |= queue.OneKey
	}
	t.props = p.Append(t.props[:0])
	t.send(x, at, targets, &it, store.Message{
		Exchange: []byte(x.Set.DeadLetterExchange), RoutingKey: key, Properties: t.props, Body: src.Body,
	})
	return true
}

// scarce reports whether memory is too low for one more message in so many queues.
func (t *turn) scarce(targets []topology.Target) bool {
	return len(targets) > scarceTargets && t.f.memoryLow()
}

// targetsOf routes a dead letter by the headers that it has now, and by the keys in CC and
// BCC unless it goes by its key alone (RabbitMQ: rabbit_dead_letter). RabbitMQ 4 does not
// show x-death itself to a headers exchange, 3.10 does, as here. routed is false when the
// exchange is missing or leads nowhere.
func (t *turn) targetsOf(x *crossing, key []byte, headers amqp.Table, oneKey bool) (targets []topology.Target, routed bool) {
	keys := !oneKey && (headers["CC"] != nil || headers["BCC"] != nil)
	t.targets.Reset()
	found, err := t.routes.Find(t.lane.VHost, []byte(x.Set.DeadLetterExchange), key, topology.ByBroker, topology.Headers{Table: headers}, keys)
	if err != nil {
		return nil, false
	}
	t.targets.AddAll(found) // which outlast the next find, of a receipt's queue
	return t.targets.List, len(found) > 0
}

// park returns the queue for messages that cannot be routed, or none where they are to be
// dropped. If it cannot be made, as its definition cannot be saved, the message stays with
// its source for another try (retained).
func (t *turn) park(x *crossing) []topology.Target {
	vh := t.lane.VHost
	if t.f.drop {
		return nil
	}
	if int64(t.s.Now) < t.lane.parkAgain.Load() {
		x.missing = x.Queued
		return nil
	}
	q, err := vh.DeclareQueue(nil, queueargs.UndeliverableQueue, topology.QueueDeclare{Durable: true})
	if err != nil {
		t.f.log.Error("the queue for undeliverable messages cannot be made: they stay where they are; make room on the disk",
			zap.String("vhost", vh.Name()), zap.Error(err))
		t.lane.parkAgain.Store(int64(t.s.Now.Add(delivery.RetryFirst)))
		x.missing = x.Queued
		return nil
	}
	x.action = deadline.Parked
	t.f.Counters.Parked.Add(1)
	return append(t.targets.List[:0], topology.Target{Queue: q, CeilingMillis: -1})
}

// withoutCycles leaves out the queues that the message has died in before with
// no rejection since: it would go round forever. A message just rejected may
// go anywhere: its consumer decided so.
func withoutCycles(targets []topology.Target, deaths []any) []topology.Target {
	var kept []topology.Target
	for i, t := range targets {
		if message.Cycles(t.Queue.Name(), deaths) {
			if kept == nil {
				kept = append(make([]topology.Target, 0, len(targets)), targets[:i]...)
			}
		} else if kept != nil {
			kept = append(kept, t)
		}
	}
	if kept == nil {
		return targets
	}
	return kept
}

// fields say which queue a log entry is about.
func (t *turn) fields(x *crossing, err error) []zap.Field {
	return []zap.Field{zap.String("vhost", t.lane.VHost.Name()), zap.String("queue", x.from.Name), zap.Error(err)}
}

// What is logged once of a queue.
const (
	noticeCycle uint32 = 1 << iota
	noticeReceipt
	noticeBounded
)

// logBounded logs the first message of the queue that went no further.
func (t *turn) logBounded(x *crossing, why string) {
	if x.from.Notices.First(noticeBounded) {
		t.f.log.Warn("dead letters are parked in "+queueargs.UndeliverableQueue+": "+why+"; see where the dead-letter exchanges on their way lead",
			zap.String("vhost", t.lane.VHost.Name()), zap.String("queue", x.from.Name), zap.String("dead_letter_exchange", x.Set.DeadLetterExchange))
	}
}

// logCycle logs the queue's first cycle.
func (t *turn) logCycle(x *crossing) {
	if x.from.Notices.First(noticeCycle) {
		t.f.log.Warn("dead-letter cycle without a rejection: messages that come back to a queue they died in are dropped",
			zap.String("vhost", t.lane.VHost.Name()), zap.String("queue", x.from.Name), zap.String("dead_letter_exchange", x.Set.DeadLetterExchange))
	}
}
