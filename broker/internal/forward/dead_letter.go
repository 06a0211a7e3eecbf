package forward

import (
	"maps"
	"slices"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// scarceTargets is how many queues a letter may go to while memory is low. One with more waits in
// line.
const scarceTargets = 16

// address finds the queues for one dead letter and stores its copy. false: it has to wait for
// memory.
func (t *turn) address(x *letterMove, at int) bool {
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
		t.f.log.Error("the properties of a dead letter are unreadable and left out", t.fields(x, err)...)
		if p = (amqp.Properties{}); x.Settled.Flags&queue.Durable != 0 {
			p.DeliveryMode = 2
		}
	}
	if !x.Settings.DeadLetters || x.Settings.DropsExpired && x.Settled.Reason == queue.Expired {
		t.f.env.Counters.ExpiredDropped.Add(1)
		describe(t.s, x, p.MessageID, "", nil)
	} else if !t.addressAny(x, at, src, &p) {
		return false
	}
	x.owes = delivery.OwesReceipt(&x.Settled) && !x.Tried
	return true
}

// addressAny is address for any dead letter.
func (t *turn) addressAny(x *letterMove, at int, src store.Message, p *amqp.Properties) bool {
	died := x.Settled.Flags&queue.Died != 0
	oneKey := x.Settled.Flags&queue.OneKey != 0
	deaths := message.RecordDeath(p, message.Death{
		Queue: x.from.Name, Reason: x.Settled.Reason.String(), At: t.f.env.Clock.WallSeconds(x.At),
		Exchange: string(src.Exchange), Keys: message.OriginalKeys(src.RoutingKey, p.Headers, oneKey),
	}, died)
	key := src.RoutingKey
	if x.Settings.HasDeadLetterKey {
		key, oneKey = []byte(x.Settings.DeadLetterKey), true
	}
	targets, routed := t.targetsOf(x, key, p.Headers, oneKey)
	if t.scarce(targets) {
		return false
	}
	if x.Settings.SetsDeadLetterReason(x.Settled.Reason) {
		message.SetDeadLetterReason(p.Headers, &x.Settled)
	}
	if x.Why != nil {
		maps.Copy(p.Headers, x.Why.Properties)
		if !x.Why.Modified {
			message.SetRejection(p.Headers, x.Why.Reason, x.Why.Description)
		}
	}
	targets, tooMany := t.withinBounds(x, targets, p.Headers, deaths, died)
	switch {
	case !routed && x.Waits():
		x.missing = true
		describe(t.s, x, p.MessageID, string(key), nil)
		t.countDeadLettered(x)
		return true
	case routed && !tooMany:
		if len(targets) > 0 {
			x.action = deadline.DeadLettered
		}
	case slices.Contains(message.DiedIn(deaths), policy.UndeliverableQueue):
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
	t.countDeadLettered(x)
	t.sendDeadLetter(x, at, targets, p, key, src.Body, oneKey)
	return true
}

// withinBounds leaves out targets that would close a cycle, and reports whether the dead letter has
// died too often, or would be copied too often, to go any further.
func (t *turn) withinBounds(x *letterMove, targets []topology.Target, headers amqp.Table, deaths []any, died bool) (_ []topology.Target, tooMany bool) {
	cut := withoutCycles(targets, deaths)
	if parks := x.Settled.Reason == queue.DeliveryLimit && x.Settings.Names().Park != ""; parks && len(cut) == 0 {
		return nil, true // queues that park into one another: RabbitMQ has no such cycle, so it is not dropped as there
	} else if len(cut) < len(targets) {
		t.f.Counters.Cycles.Add(uint64(len(targets) - len(cut)))
		t.logOnce(x, noticeCycle, "dead-letter cycle without a rejection: messages that come back to a queue they died in are dropped",
			zap.String("dead_letter_exchange", x.Settings.DeadLetterExchange))
		targets = cut
	}
	why := message.CountCopies(headers, deaths, len(targets), died)
	if why != "" {
		t.f.Counters.Bounded.Add(1)
		t.logOnce(x, noticeBounded, "dead letters are parked in "+policy.UndeliverableQueue+": "+why+"; see where the dead-letter exchanges on their way lead",
			zap.String("dead_letter_exchange", x.Settings.DeadLetterExchange))
	}
	return targets, why != ""
}

// countDeadLettered counts a dead letter at its first try.
func (t *turn) countDeadLettered(x *letterMove) {
	if !x.Tried {
		t.f.Counters.DeadLettered[x.Settled.Reason].Add(1)
	}
}

// sendDeadLetter sends a dead letter to those of its targets that do not have it yet and accept it.
func (t *turn) sendDeadLetter(x *letterMove, at int, targets []topology.Target, p *amqp.Properties, key, body []byte, oneKey bool) {
	if targets = x.missingTargets(targets); x.Waits() {
		targets = slices.DeleteFunc(targets, func(t topology.Target) bool {
			full := t.Queue.Messages.Refuses(delivery.Item{Message: x.Settled.Message})
			x.Refused = x.Refused || full
			return full
		})
		if len(targets) == 0 {
			return
		}
	}
	it := delivery.Item{AtLeastOnce: x.Waits(), Priority: p.Priority, TTLMillis: -1}
	it.Message.Flags = queue.Died | x.Settled.Flags&queue.Hidden
	if p.DeliveryMode == 2 {
		it.Message.Flags |= queue.Durable
	}
	if oneKey {
		it.Message.Flags |= queue.OneKey
	}
	t.props = p.Append(t.props[:0])
	t.send(x, at, targets, &it, store.Message{
		Exchange: []byte(x.Settings.DeadLetterExchange), RoutingKey: key, Properties: t.props, Body: body,
	})
}

// scarce reports whether memory is too low for one more message in all these queues.
func (t *turn) scarce(targets []topology.Target) bool {
	return len(targets) > scarceTargets && t.f.memoryLow()
}

// targetsOf routes a dead letter by the headers that it has now, and by the keys in CC and BCC
// unless it goes by its key alone (RabbitMQ: rabbit_dead_letter). A headers exchange sees x-death
// itself here and in RabbitMQ 3.10, but not in RabbitMQ 4. routed is false if the exchange is
// missing or leads nowhere.
func (t *turn) targetsOf(x *letterMove, key []byte, headers amqp.Table, oneKey bool) (targets []topology.Target, routed bool) {
	keys := !oneKey && (headers["CC"] != nil || headers["BCC"] != nil)
	t.targets.Reset()
	found, err := t.routes.Find(t.letters.VHost, []byte(x.Settings.DeadLetterExchange), key, topology.ByBroker, topology.Headers{Table: headers}, keys)
	if err != nil {
		return nil, false
	}
	t.targets.AddAll(found) // they outlast the next Find, for a receipt's queue
	return t.targets.List, len(found) > 0
}

// park returns the queue for messages that cannot be routed, or none if they are dropped. If that
// queue cannot be made, because its definition cannot be saved, the message stays with its source
// for another try (retained).
func (t *turn) park(x *letterMove) []topology.Target {
	vh := t.letters.VHost
	if t.f.drop {
		return nil
	}
	if int64(t.s.Now) < t.letters.parkAgain.Load() {
		x.missing = x.Queued
		return nil
	}
	q, err := vh.Queues.Declare(nil, policy.UndeliverableQueue, topology.QueueDeclare{Durable: true})
	if err != nil {
		t.f.log.Error("cannot make the queue for undeliverable messages: they stay where they are; make room on the disk",
			zap.String("vhost", vh.Name()), zap.Error(err))
		t.letters.parkAgain.Store(int64(t.s.Now.Add(delivery.RetryFirst)))
		x.missing = x.Queued
		return nil
	}
	x.action = deadline.Parked
	t.f.Counters.Parked.Add(1)
	return append(t.targets.List[:0], topology.Target{Queue: q, CeilingMillis: -1})
}

// withoutCycles leaves out the queues in which the message has died before with no rejection since:
// it would go round forever. A message that was just rejected may go anywhere, since its consumer
// decided so.
func withoutCycles(targets []topology.Target, deaths []any) []topology.Target {
	died := message.DiedIn(deaths)
	has := contained(died, len(targets))
	cycles := func(t topology.Target) bool { return has(t.Queue.Name) }
	if !slices.ContainsFunc(targets, cycles) {
		return targets
	}
	return slices.DeleteFunc(slices.Clone(targets), cycles)
}

// contained returns whether something is in the list, for as many questions.
func contained[T comparable](list []T, questions int) func(T) bool {
	const few = 16
	if len(list) <= few || questions <= few {
		return func(v T) bool { return slices.Contains(list, v) }
	}
	set := make(map[T]struct{}, len(list))
	for _, v := range list {
		set[v] = struct{}{}
	}
	return func(v T) bool { _, ok := set[v]; return ok }
}

// fields name the queue that a log entry is about.
func (t *turn) fields(x *letterMove, err error) []zap.Field {
	return []zap.Field{zap.String("vhost", t.letters.VHost.Name()), zap.String("queue", x.from.Name), zap.Error(err)}
}

// What is logged once for each queue.
const (
	noticeCycle uint32 = 1 << iota
	noticeReceipt
	noticeBounded
)

// logOnce logs the first of what happens again and again to the messages of one queue.
func (t *turn) logOnce(x *letterMove, notice uint32, text string, fields ...zap.Field) {
	if x.from.Notices.Or(notice)&notice == 0 {
		t.f.log.Warn(text, append(fields, zap.String("vhost", t.letters.VHost.Name()), zap.String("queue", x.from.Name))...)
	}
}
