package broker

import (
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// A receipt tells the publisher of a message that it expired: a small message, by the
// default exchange, to the message's reply-to. It is made once, for the first queue in
// which a copy of the message expires, however that was noticed and whether the queue
// dead-letters or not; a dead letter that expires again owes none, nor does a receipt.
//
// It is persistent if its message was, and then in the same record of the journal as
// the expiry, beside the dead letter if there is one: after a crash the message is in
// its queue and will expire, or is not and the receipt is there. What is retained
// (x-dead-letter-strategy) is told of when it expires, and in its queue still after a
// crash: then it is told of again. A direct reply is handed over and stored nowhere.

// receiptBody is the JSON in a receipt.
type receiptBody struct {
	Event         string `json:"event"` // expired
	MessageID     string `json:"message_id,omitempty"`
	CorrelationID string `json:"correlation_id,omitempty"`
	VHost         string `json:"vhost"`
	Queue         string `json:"queue"`
	Deadline      string `json:"deadline"` // RFC 3339
	LatenessMS    int64  `json:"lateness_ms"`
	Outcome       string `json:"outcome"` // dropped, dead_lettered, parked
}

// receiptType is the type property of a receipt.
const receiptType = "curfew.expiry-receipt"

// receiptResult is what became of a receipt.
type receiptResult uint8

const (
	receiptSent       receiptResult = iota
	receiptUnroutable               // nobody has the queue it goes to
	receiptFailed                   // it could not be stored

	receiptResults = int(iota)
)

func (r receiptResult) String() string {
	return [receiptResults]string{"sent", "unroutable", "failed"}[r]
}

// checkReceipt refuses a header that asks for a receipt and is none, without a place to
// send it to, or by a user who may not publish there.
func (p *Publisher) checkReceipt(headers amqp.Table, view *amqp.PropertyView) error {
	wanted, isBool := headers[receiptHeader].(bool)
	switch {
	case !isBool:
		return badPublish("invalid %s header type; expected boolean", receiptHeader)
	case !wanted:
		return nil
	case len(view.ReplyTo) == 0:
		return badPublish("%s header needs a reply-to property", receiptHeader)
	case p.rights == nil:
		return nil
	}
	return amqp.Answering(p.rights.Exchange(access.Write, ""), amqp.BasicPublishID)
}

// owesReceipt says whether a message that left its queue may owe a receipt.
func owesReceipt(settled *queue.Settled) bool {
	return settled.Reason == queue.Expired && settled.Flags&queue.Receipt != 0
}

// giveReceipt adds the receipt of a message that was buried, or dropped, to the queue it
// goes to, as a part of the message's move.
func (s *step) giveReceipt(x *crossing, at int, p *amqp.Properties) {
	if p.Headers[receiptHeader] != true || p.ReplyTo == "" {
		return
	}
	result, why := s.sendReceipt(x, at, p.ReplyTo, s.receipt(x, p))
	s.b.counters.receipts[result].Add(1)
	if result != receiptSent {
		x.from.tellReceipt(why, p.ReplyTo)
	}
}

// receipt is the message; its properties are valid until the next is made.
func (s *step) receipt(x *crossing, p *amqp.Properties) store.Message {
	action := x.action
	if x.missing {
		action = Retained
	}
	body, err := json.Marshal(&receiptBody{
		Event: "expired", MessageID: p.MessageID, CorrelationID: p.CorrelationID, VHost: x.from.vh.name, Queue: x.from.name,
		Deadline:   time.UnixMilli(s.b.UnixMillis(x.settled.ExpiresAt)).UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		LatenessMS: millis(max(s.now-x.settled.ExpiresAt, 0)), Outcome: outcomeName(action),
	})
	if err != nil { // strings and a number
		panic("broker: receipt: " + err.Error())
	}
	properties := amqp.Properties{
		ContentType: "application/json", DeliveryMode: 1, Timestamp: amqp.Timestamp(s.b.wallSeconds(s.now)), Type: receiptType, AppID: "curfew",
		CorrelationID: p.CorrelationID,
	}
	if x.settled.Flags&queue.Durable != 0 {
		properties.DeliveryMode = 2
	}
	s.turns.props = properties.Append(s.turns.props[:0])
	return store.Message{RoutingKey: []byte(p.ReplyTo), Properties: s.turns.props, Body: body}
}

func outcomeName(a Action) string {
	// What is retained is dead-lettered as soon as it is taken.
	return [...]string{Dropped: "dropped", DeadLettered: "dead_lettered", Parked: "parked", Retained: "dead_lettered"}[a]
}

// sendReceipt hands a receipt over, or has it enter its queue with the batch. why says
// what is wrong where it is not sent.
func (s *step) sendReceipt(x *crossing, at int, to string, m store.Message) (_ receiptResult, why error) {
	vh, t := x.from.vh, &s.turns
	if IsReply(to) {
		if err := vh.CheckReply(to); err != nil {
			return receiptUnroutable, err
		}
		vh.reply(m.RoutingKey, &Publication{RoutingKey: m.RoutingKey, Properties: m.Properties, Body: m.Body}, 0)
		return receiptSent, nil
	}
	targets, err := t.routes.find(vh, nil, m.RoutingKey, byBroker, messageHeaders{}, false)
	if err != nil || len(targets) == 0 || targets[0].queue.asked.keeps { // who asked for it is a client
		return receiptUnroutable, vh.noQueue(to)
	}
	it := item{ttlMillis: -1, move: at}
	it.message.Flags, it.message.Bytes = x.settled.Flags&queue.Durable, uint32(len(m.Body))
	pos, err := s.b.store.PutMoved(m, anyPersists(targets, it.message.Flags), 1+len(targets))
	if err != nil {
		return receiptFailed, err
	}
	x.receipt, it.message.Pos = pos, uint64(pos)
	t.batch.addAll(targets, &it)
	return receiptSent, nil
}

// tellReceipt logs the first receipt of the queue that is lost.
func (q *Queue) tellReceipt(why error, to string) {
	if !q.receiptTold.Swap(true) {
		q.vh.b.log.Warn("a receipt is lost", zap.String("vhost", q.vh.name), zap.String("queue", q.name), zap.String("reply_to", to), zap.Error(why))
	}
}
