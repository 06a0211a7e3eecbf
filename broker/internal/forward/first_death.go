package forward

import (
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// addressFresh is address for the most frequent kind of dead letter: it has not died before, none
// of its headers means anything to the broker, and it is routed to queues other than its own
// without a headers exchange. The record of its death is written straight into its property list,
// just as message.RecordDeath would write it, without an allocation. done is false, and nothing
// was done, for any other kind; ok is what address returns.
func (t *turn) addressFresh(x *letterMove, at int, src store.Message) (done, ok bool) {
	settings := x.Settings
	var view amqp.PropertyView
	err := view.Parse(src.Properties)
	if err != nil || message.Meaningful(view.Headers) || !settings.DeadLetters || settings.SetsDeadLetterReason(x.Settled.Reason) || x.Settled.Flags&queue.Died != 0 || x.Why != nil || delivery.OwesReceipt(&x.Settled) {
		return false, false
	}
	key := src.RoutingKey
	if settings.HasDeadLetterKey {
		t.key = append(t.key[:0], settings.DeadLetterKey...)
		key = t.key
	}
	t.exchange = append(t.exchange[:0], settings.DeadLetterExchange...)
	targets, err := t.routes.Find(t.letters.VHost, t.exchange, key, topology.ByBroker, topology.Headers{}, false)
	if err != nil || t.routes.ByTable || len(targets) == 0 || returns(targets, x.from) {
		return false, false
	}
	if t.scarce(targets) {
		return true, false
	}
	x.action = deadline.DeadLettered
	describe(t.s, x, view.MessageID, key, targets)
	t.f.Counters.DeadLettered[x.Settled.Reason].Add(1)
	it := delivery.Item{Priority: view.Priority, TTLMillis: -1}
	it.Message.Flags = queue.Died | x.Settled.Flags&queue.Hidden
	if view.DeliveryMode == 2 {
		it.Message.Flags |= queue.Durable
	}
	t.headers = message.AppendFirstDeath(t.headers[:0], x.from.Name, x.Settled.Reason.String(), src.Exchange, src.RoutingKey, &view, len(targets), t.f.env.Clock.WallSeconds(x.At))
	t.props = view.With(t.props[:0], src.Properties, t.headers, nil)
	t.send(x, at, targets, &it, store.Message{Exchange: t.exchange, RoutingKey: key, Properties: t.props, Body: src.Body})
	return true, true
}

// returns reports whether a dead letter would come back to its queue, which may be a cycle.
func returns(targets []topology.Target, q *delivery.Letters) bool {
	for i := range targets {
		if targets[i].Queue.Name == q.Name {
			return true
		}
	}
	return false
}
