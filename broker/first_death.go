package broker

import (
	"bytes"
	"encoding/binary"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// addressFresh is address for the dead letter that is most frequent: it has not died
// before, no header of it means anything to the broker, and it is routed, by no headers
// exchange, to other queues than its own. The record of its death is written straight into
// its property list, as recordDeath would have it, without an allocation. done is false if
// it is another's case, and nothing was done; ok is what address returns.
func (s *step) addressFresh(x *crossing, at int, src store.Message) (done, ok bool) {
	t, set := &s.turns, x.set
	view, err := amqp.ViewProperties(src.Properties)
	if err != nil || meaningful(view.Headers) || !set.deadLetter || set.explains(x.settled.Reason) || x.settled.Flags&queue.Died != 0 || owesReceipt(&x.settled) {
		return false, false
	}
	key := src.RoutingKey
	if set.ownKey {
		t.key = append(t.key[:0], set.dlk...)
		key = t.key
	}
	t.exchange = append(t.exchange[:0], set.dlx...)
	targets, err := t.routes.find(x.from.vh, t.exchange, key, byBroker, messageHeaders{}, false)
	if err != nil || t.routes.byTable || len(targets) == 0 || returns(targets, x.from) {
		return false, false
	}
	if s.scarce(targets) {
		return true, false
	}
	x.action = DeadLettered
	describe(s, x, view.MessageID, key, targets)
	s.b.counters.deadLettered[x.settled.Reason].Add(1)
	it := item{priority: view.Priority, ttlMillis: -1}
	it.message.Flags = queue.Died | x.settled.Flags&queue.Hidden
	if view.DeliveryMode == 2 {
		it.message.Flags |= queue.Durable
	}
	t.headers = appendFirstDeath(t.headers[:0], x, src, &view, len(targets), s.b.wallSeconds(x.at))
	t.props = view.With(t.props[:0], src.Properties, t.headers, nil)
	s.send(x, at, targets, &it, store.Message{Exchange: t.exchange, RoutingKey: key, Properties: t.props, Body: src.Body})
	return true, true
}

// meaningful says whether one of the headers may be for the broker: those it knows
// are CC, BCC, and others that begin with x-.
func meaningful(headers []byte) bool {
	return bytes.Contains(headers, []byte("x-")) || bytes.Contains(headers, []byte("CC"))
}

// returns says whether a dead letter would come back to its queue, which may be a
// cycle.
func returns(targets []target, q *Queue) bool {
	for i := range targets {
		if targets[i].queue.name == q.name {
			return true
		}
	}
	return false
}

// appendFirstDeath appends the headers of a message that died for the first time:
// those it had, and the new ones in the order in which AppendTable writes them.
func appendFirstDeath(b []byte, x *crossing, src store.Message, view *amqp.PropertyView, copies int, at int64) []byte {
	reason := reasonName(x.settled.Reason)
	b, headers := amqp.OpenTable(b)
	if view.Headers != nil {
		b = append(b, view.Headers[4:]...) // the entries
	}
	if copies > 1 {
		b = binary.BigEndian.AppendUint64(amqp.AppendKey(b, copiesHeader, 'l'), uint64(copies))
	}
	b = amqp.AppendKey(b, "x-death", 'A')
	b, deaths := amqp.OpenTable(b)
	b, entry := amqp.OpenTable(append(b, 'F'))
	b = binary.BigEndian.AppendUint64(amqp.AppendKey(b, "count", 'l'), 1)
	b = appendText(b, "exchange", src.Exchange)
	if view.HasExpiration {
		b = appendText(b, "original-expiration", view.Expiration)
	}
	b = appendText(b, "queue", x.from.name)
	b = appendText(b, "reason", reason)
	b = amqp.AppendKey(b, "routing-keys", 'A')
	b, keys := amqp.OpenTable(b)
	b = appendLong(append(b, 'S'), src.RoutingKey)
	b = amqp.CloseTable(b, keys)
	b = binary.BigEndian.AppendUint64(amqp.AppendKey(b, "time", 'T'), uint64(at))
	b = amqp.CloseTable(b, entry)
	b = amqp.CloseTable(b, deaths)
	b = appendText(b, "x-first-death-exchange", src.Exchange)
	b = appendText(b, "x-first-death-queue", x.from.name)
	b = appendText(b, "x-first-death-reason", reason)
	b = appendText(b, "x-last-death-exchange", src.Exchange)
	b = appendText(b, "x-last-death-queue", x.from.name)
	b = appendText(b, "x-last-death-reason", reason)
	return amqp.CloseTable(b, headers)
}

func appendText[S string | []byte](b []byte, key string, value S) []byte {
	return appendLong(amqp.AppendKey(b, key, 'S'), value)
}

func appendLong[S string | []byte](b []byte, value S) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}
