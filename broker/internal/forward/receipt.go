package forward

import (
	"encoding/json"
	"time"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// A receipt tells the publisher of a message that it expired. It is a small message that goes to
// the message's reply-to by the default exchange. It is made once, for the first queue in which a
// copy of the message expires, however that was noticed and whether or not the queue dead-letters.
// A dead letter that expires again owes none, and neither does a receipt.
//
// It is persistent if its message was. Then it is in the same record of the journal as the expiry,
// along with the dead letter if there is one: after a crash either the message is in its queue and
// will expire, or the receipt exists. The receipt of a message that is retained
// (x-dead-letter-strategy) is made when it expires. After a crash that message is still in its
// queue: it expires again, and another receipt is made. A direct reply is handed over and stored
// nowhere.

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

// ReceiptResult is what became of a receipt.
type ReceiptResult uint8

const (
	receiptSent       ReceiptResult = iota
	receiptUnroutable               // the queue it should go to does not exist
	receiptFailed                   // it could not be stored

	receiptResults = int(iota)
)

func (r ReceiptResult) String() string {
	return [receiptResults]string{"sent", "unroutable", "failed"}[r]
}

// giveReceipts adds the receipts of letters that have arrived and owe one, as a part of their
// moves. Each gives the same lateness as the record of its expiry.
func (t *turn) giveReceipts(begun int, arrived deadline.Instant) {
	given := false
	for i := range begun {
		if x := &t.moves[i]; x.owes && len(x.targets) == 0 {
			t.giveReceipt(x, i, arrived)
			given = true
		}
	}
	if given {
		t.batch.Flush(t.s)
	}
}

func (t *turn) giveReceipt(x *letterMove, at int, arrived deadline.Instant) {
	p, err := amqp.ParseProperties(t.f.env.Store.View(store.Pos(x.Settled.Pos)).Properties, message.StoredLimits)
	if err != nil || p.Headers[message.ReceiptHeader] != true || p.ReplyTo == "" {
		return
	}
	result, why := t.sendReceipt(x, at, p.ReplyTo, t.receipt(x, &p, arrived))
	t.f.Counters.Receipts[result].Add(1)
	if result != receiptSent {
		t.logOnce(x, noticeReceipt, "a receipt is lost", zap.String("reply_to", p.ReplyTo), zap.Error(why))
	}
}

// receipt makes the message; its properties are valid until the next one is made.
func (t *turn) receipt(x *letterMove, p *amqp.Properties, arrived deadline.Instant) store.Message {
	action := x.action
	if x.missing { // it will be dead-lettered as soon as its exchange leads anywhere
		action = deadline.DeadLettered
	}
	body, err := json.Marshal(&receiptBody{
		Event: "expired", MessageID: p.MessageID, CorrelationID: p.CorrelationID, VHost: t.letters.VHost.Name(), Queue: x.from.Name,
		Deadline:   time.UnixMilli(t.f.env.Clock.UnixMillis(x.Settled.ExpiresAt)).UTC().Format("2006-01-02T15:04:05.000Z07:00"),
		LatenessMS: int64(deadline.RoundUp(deadline.Lateness(x.Settled.ExpiresAt, arrived))), Outcome: action.String(),
	})
	if err != nil { // strings and a number
		panic("broker: receipt: " + err.Error())
	}
	properties := amqp.Properties{
		ContentType: "application/json", DeliveryMode: 1, Timestamp: amqp.Timestamp(t.f.env.Clock.WallSeconds(arrived)), Type: receiptType, AppID: "curfew",
		CorrelationID: p.CorrelationID,
	}
	if x.Settled.Flags&queue.Durable != 0 {
		properties.DeliveryMode = 2
	}
	t.props = properties.Append(t.props[:0])
	return store.Message{RoutingKey: []byte(p.ReplyTo), Properties: t.props, Body: body}
}

// sendReceipt hands a receipt over, or adds it to the batch. why says what is wrong if it is not
// sent.
func (t *turn) sendReceipt(x *letterMove, at int, to string, m store.Message) (_ ReceiptResult, why error) {
	vh := t.letters.VHost
	if direct, err := t.letters.reply(&m); direct {
		if err != nil {
			return receiptUnroutable, err
		}
		return receiptSent, nil
	}
	targets, err := t.routes.Find(vh, nil, m.RoutingKey, topology.ByBroker, topology.Headers{}, false)
	if err != nil || len(targets) == 0 || targets[0].Queue.Arguments.Keeps { // a client asked for it, and clients cannot publish to such a queue
		return receiptUnroutable, delivery.NoQueue(vh.Name(), to)
	}
	it := delivery.Item{TTLMillis: -1, Move: at}
	it.Message.Flags, it.Message.Bytes = x.Settled.Flags&queue.Durable, uint32(len(m.Body))
	pos, err := t.f.env.Store.PutMoved(m, topology.AnyPersists(targets, it.Message.Flags), 1+len(targets))
	if err != nil {
		return receiptFailed, err
	}
	x.receipt, it.Message.Pos = pos, uint64(pos)
	topology.AddAll(&t.batch, targets, &it)
	return receiptSent, nil
}
