package forward

import (
	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// activate routes a delayed message whose time has come, as if it were published now. One that is
// routed nowhere is parked like a dead letter, since its publisher can no longer be told that it
// is unroutable. false: it has to wait for memory.
func (t *turn) activate(x *letterMove, at int) bool {
	src := t.f.env.Store.View(store.Pos(x.Settled.Pos))
	p, err := amqp.ParseProperties(src.Properties, message.StoredLimits)
	if err != nil { // it was readable when it was published
		t.f.log.Error("delayed message is unreadable and dropped", t.fields(x, err)...)
		return true
	}
	if p.Headers != nil {
		message.DelayDone(p.Headers)
	}
	t.props = p.Append(t.props[:0])
	m := store.Message{Exchange: src.Exchange, RoutingKey: src.RoutingKey, Properties: t.props, Body: src.Body}
	view, _ := amqp.ViewProperties(m.Properties)
	has := message.MarksOf(view.Headers)
	it := delivery.Item{TTLMillis: -1}
	targets, err := t.routes.Find(t.letters.VHost, m.Exchange, m.RoutingKey, topology.ByClient, topology.Headers{Raw: view.Headers}, has&message.KeyMarks != 0)
	if t.scarce(targets) {
		return false
	}
	if err != nil || len(targets) == 0 {
		if !x.Tried {
			t.f.Counters.Unroutable.Add(1)
		}
		if targets = t.park(x); len(targets) == 0 {
			return true
		}
		t.logOnce(x, noticeBounded, "delayed messages that no queue is bound for when they are due are parked in "+policy.UndeliverableQueue,
			zap.ByteString("exchange", m.Exchange), zap.ByteString("routing_key", m.RoutingKey))
		message.RecordDeath(&p, message.Death{
			Queue: x.from.Name, Reason: "unroutable", At: t.f.env.Clock.WallSeconds(x.At),
			Exchange: string(src.Exchange), Keys: message.OriginalKeys(src.RoutingKey, p.Headers, false),
		}, false)
		t.props = p.Append(t.props[:0])
		m.Properties = t.props
		it.Message.Flags = queue.Died
		if p.DeliveryMode == 2 {
			it.Message.Flags |= queue.Durable
		}
		describe(t.s, x, p.MessageID, string(m.RoutingKey), targets)
		if x.about != nil {
			x.about.Exchange = string(m.Exchange)
		}
	} else {
		_ = it.Read(&view, has, len(m.Body)) // it was checked when it was published
		it.Message.ExpiresAt, _ = message.InstantOf(p.Headers, message.ExpiresAtHeader, t.s.Now, t.f.env.Clock.Ahead())
		if p.Headers != nil {
			it.Named = &message.Named{Headers: p.Headers, Now: t.s.Now, Ahead: t.f.env.Clock.Ahead()}
		}
	}
	t.send(x, at, targets, &it, m)
	return true
}
