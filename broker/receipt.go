package broker

import (
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// receipt tells the publisher of a message that it expired: a small transient message,
// by the default exchange, to the message's reply-to. It is made once, for the first
// queue in which a copy of the message expires, however that was noticed and whether
// the queue dead-letters or not; a dead letter that expires again owes none, nor does a
// receipt. It is no part of the journal's record of the expiry: a process that ends
// between the two sends none.
type receipt struct {
	from          *Queue
	to            string
	correlationID string
	body          receiptBody
}

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
func owesReceipt(x *queue.Settled) bool {
	return x.Reason == queue.Expired && x.Flags&queue.Receipt != 0
}

// owe notes the receipt of a message that was buried, or dropped.
func (s *step) owe(d *deadLetter, p *amqp.Properties) {
	if p.Headers[receiptHeader] != true || p.ReplyTo == "" {
		return
	}
	action := d.action
	if d.missing {
		action = Retained
	}
	s.owed = append(s.owed, receipt{from: d.from, to: p.ReplyTo, correlationID: p.CorrelationID, body: receiptBody{
		Event: "expired", MessageID: p.MessageID, CorrelationID: p.CorrelationID, VHost: d.from.vh.name, Queue: d.from.name,
		Deadline:   time.UnixMilli(d.settled.ExpiresAt).UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		LatenessMS: max(s.now-d.settled.ExpiresAt, 0), Outcome: outcomeName(action),
	}})
}

func outcomeName(a Action) string {
	// What is retained is dead-lettered as soon as it is taken.
	return [...]string{Dropped: "dropped", DeadLettered: "dead_lettered", Parked: "parked", Retained: "dead_lettered"}[a]
}

// sendReceipts publishes what is owed. No lock is held.
func (s *step) sendReceipts() {
	var p *Publisher
	for i := range s.owed {
		r := &s.owed[i]
		if p != nil && p.vh != r.from.vh {
			p.Flush(nil)
			p = nil
		}
		if p == nil {
			p = r.from.vh.OwnPublisher()
		}
		result := r.send(p, s.now)
		s.b.counters.receipts[result].Add(1)
	}
	p.Flush(nil)
}

// send adds the receipt to the publisher. The first that goes nowhere is logged.
func (r *receipt) send(p *Publisher, now int64) receiptResult {
	body, err := json.Marshal(&r.body)
	if err != nil { // strings and a number
		panic("broker: receipt: " + err.Error())
	}
	properties := amqp.Properties{
		ContentType: "application/json", DeliveryMode: 1, Timestamp: amqp.Timestamp(now / 1000), Type: receiptType, AppID: "curfew",
		CorrelationID: r.correlationID,
	}
	routed, err := p.Add(&Publication{RoutingKey: []byte(r.to), Properties: properties.Append(nil), Body: body})
	switch {
	case err != nil:
		r.from.tellReceipt("a receipt could not be made", zap.Error(err))
		return receiptFailed
	case !routed && (!IsReply(r.to) || r.from.vh.CheckReply(r.to) != nil):
		r.from.tellReceipt("a receipt has nowhere to go: the queue its message names in reply-to is gone", zap.String("reply_to", r.to))
		return receiptUnroutable
	}
	return receiptSent
}

// tellReceipt logs the first receipt of the queue that is lost.
func (q *Queue) tellReceipt(what string, why zap.Field) {
	if !q.receiptTold.Swap(true) {
		q.vh.b.log.Warn(what, zap.String("vhost", q.vh.name), zap.String("queue", q.name), why)
	}
}
