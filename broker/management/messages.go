package management

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/memory"
	"curfew/broker/queue"
)

// maxAnswer bounds the payloads of one answer, in bytes; what is beyond stays in
// the queue.
const maxAnswer = 128 << 20

// queueToRead is the queue the path names, if the user may read it.
func (q *request) queueToRead() (*broker.VHost, *broker.Queue, error) {
	vh, err := q.vhost()
	if err == nil {
		err = q.rights(vh).Queue(access.Read, q.queueName(vh))
	}
	if err != nil {
		return nil, nil, err
	}
	return q.queue()
}

// fetch is what get was asked for.
type fetch struct {
	count    int
	noAck    bool
	after    broker.Settlement // of what was not acked as it was taken
	encoding string
	truncate int // <0: whole
}

// ackModes are what becomes of messages that were got.
var ackModes = map[string]fetch{
	"ack_requeue_true":     {after: broker.Requeue},
	"reject_requeue_true":  {after: broker.Requeue},
	"ack_requeue_false":    {noAck: true},
	"reject_requeue_false": {after: broker.Reject},
}

// get takes messages from the queue and puts them back or not, as asked.
func (q *request) get() error {
	f, err := q.fields()
	if err == nil {
		err = f.need("ackmode", "count", "encoding")
	}
	if err != nil {
		return err
	}
	want, err := f.fetch()
	if err != nil {
		return err
	}
	vh, err := q.vhost()
	if err == nil {
		err = q.rights(vh).Queue(access.Read, q.queueName(vh))
	}
	if err != nil {
		return err
	}
	from, err := vh.QueueFor(owner{}, q.queueName(vh))
	if err != nil {
		return prefixed(err)
	}
	list, err := want.from(from, q.account)
	if err != nil {
		return err
	}
	return q.answer(list)
}

// prefixed keeps the code's name before the text, as RabbitMQ has it here.
func prefixed(err error) error {
	if e, ok := err.(*amqp.Exception); ok && e.Code == amqp.NotFound {
		return &problem{404, "not_found", e.Text}
	}
	return err
}

func (f fields) fetch() (fetch, error) {
	mode, err := f.text("ackmode", "")
	if err != nil {
		return fetch{}, err
	}
	want, ok := ackModes[mode]
	if !ok {
		return fetch{}, bad("Unsupported ackmode. Please use ack_requeue_true, reject_requeue_true, ack_requeue_false or reject_requeue_false.")
	}
	if want.encoding, err = f.encoding(); err != nil {
		return fetch{}, err
	}
	count, err := f.integer("count", 0)
	if err != nil {
		return fetch{}, err
	}
	truncate, err := f.integer("truncate", -1)
	want.count, want.truncate = int(count), int(truncate)
	if count < 0 { // all there are, as in RabbitMQ
		want.count = math.MaxInt
	}
	return want, err
}

func (f fields) encoding() (string, error) {
	e, err := f.text("encoding", "auto")
	if err == nil && e != "auto" && e != "base64" {
		err = bad("Unsupported encoding. Please use auto or base64.")
	}
	return e, err
}

// messageBytes is what the object of a message takes beside its content.
const messageBytes = 1 << 10

// shownWeight: a payload is held as text, in base64 and in the answer.
const shownWeight = 4

// from takes up to count messages, then settles them. It stops early where there is no
// memory for more.
func (want *fetch) from(from *broker.Queue, account *memory.Account) ([]object, error) {
	list, seqs, bytes, paid := []object{}, []queue.Seq{}, 0, 0
	for len(list) < want.count && bytes < maxAnswer {
		due := shownWeight * bytes
		if !account.Try(int64(due - paid)) {
			break
		}
		paid = due
		got, err := from.Get(want.noAck, func(d *broker.Delivery) {
			o := messageObject(string(d.Message.Exchange), string(d.Message.RoutingKey), d.Redelivered, d.Message.Properties, d.Message.Body, len(d.Message.Body), want)
			o["message_count"] = d.Ready
			bytes += messageBytes + len(d.Message.Properties) + len(d.Message.Body)
			list, seqs = append(list, o), append(seqs, d.Seq)
		})
		if err != nil {
			from.Settle(broker.Requeue, seqs, nil)
			return nil, err
		}
		if !got {
			break
		}
	}
	if !want.noAck {
		from.Settle(want.after, seqs, nil)
	}
	return list, nil
}

// messageObject shows a message; body may be cut already, whole is its size.
func messageObject(exchange, key string, redelivered bool, properties, body []byte, whole int, want *fetch) object {
	if want.truncate >= 0 && len(body) > want.truncate {
		body = body[:want.truncate]
	}
	payload, encoding := string(body), "string"
	if want.encoding == "base64" || !utf8.Valid(body) {
		payload, encoding = base64.StdEncoding.EncodeToString(body), "base64"
	}
	return object{
		"payload_bytes": whole, "redelivered": redelivered, "exchange": exchange, "routing_key": key,
		"properties": propertiesObject(properties), "payload": payload, "payload_encoding": encoding,
	}
}

// propertiesObject shows the properties that a message has.
func propertiesObject(raw []byte) object {
	o := object{}
	p, err := broker.ParseStored(raw)
	if err != nil {
		return o
	}
	add := func(flag amqp.PropertySet, name string, v any) {
		if p.Has&flag != 0 {
			o[name] = v
		}
	}
	add(amqp.HasContentType, "content_type", p.ContentType)
	add(amqp.HasContentEncoding, "content_encoding", p.ContentEncoding)
	add(amqp.HasHeaders, "headers", jsonOf(p.Headers))
	add(amqp.HasDeliveryMode, "delivery_mode", p.DeliveryMode)
	add(amqp.HasPriority, "priority", p.Priority)
	add(amqp.HasCorrelationID, "correlation_id", p.CorrelationID)
	add(amqp.HasReplyTo, "reply_to", p.ReplyTo)
	add(amqp.HasExpiration, "expiration", p.Expiration)
	add(amqp.HasMessageID, "message_id", p.MessageID)
	add(amqp.HasTimestamp, "timestamp", uint64(p.Timestamp))
	add(amqp.HasType, "type", p.Type)
	add(amqp.HasUserID, "user_id", p.UserID)
	add(amqp.HasAppID, "app_id", p.AppID)
	add(amqp.HasClusterID, "cluster_id", p.ClusterID)
	return o
}

const (
	peekCount    = 10
	maxPeekCount = 500
	peekBytes    = 4096
	maxPeek      = 16 << 20 // octets of all bodies
)

// peek shows messages and leaves everything as it is.
func (q *request) peek() error {
	f, err := q.fields()
	if err != nil {
		return err
	}
	browse, encoding, err := f.browse()
	if err != nil {
		return err
	}
	_, from, err := q.queueToRead()
	if err != nil {
		return err
	}
	most := int64(browse.Count) * int64(min(browse.BodyBytes, q.api.b.MaxMessageBytes()))
	if most > maxPeek {
		return bad(fmt.Sprintf("count times truncate is more than %d", maxPeek))
	}
	if err := q.account.Take(min(shownWeight*most, maxPeek)); err != nil {
		return err
	}
	found, err := from.Browse(browse)
	if err != nil {
		return err
	}
	list := []object{}
	for i := range found {
		list = append(list, q.peekObject(&found[i], encoding))
	}
	return q.answer(list)
}

func (f fields) browse() (b broker.Browse, encoding string, err error) {
	if encoding, err = f.encoding(); err != nil {
		return b, "", err
	}
	from, _ := f.text("from", "head")
	state, _ := f.text("state", "")
	states := map[string]queue.State{"": 0, "ready": queue.Ready, "unacked": queue.Unacked}
	if !slices.Contains([]string{"head", "tail"}, from) {
		return b, "", bad("Unsupported from. Please use head or tail.")
	}
	if _, ok := states[state]; !ok {
		return b, "", bad("Unsupported state. Please use ready or unacked.")
	}
	b = broker.Browse{FromTail: from == "tail", State: states[state]}
	for _, n := range []struct {
		key          string
		to           *int
		absent, most int64
	}{{"offset", &b.Offset, 0, 1 << 40}, {"count", &b.Count, peekCount, maxPeekCount}, {"truncate", &b.BodyBytes, peekBytes, broker.DefaultMaxMessageBytes}} {
		v, err := f.integer(n.key, n.absent)
		if err != nil {
			return b, "", err
		}
		if v < 0 || v > n.most {
			return b, "", bad([]any{"out_of_range", n.key, v})
		}
		*n.to = int(v)
	}
	return b, encoding, nil
}

// peekObject is a message as get shows it, and how it stands.
func (q *request) peekObject(x *broker.Browsed, encoding string) object {
	o := messageObject(string(x.Message.Exchange), string(x.Message.RoutingKey), x.Redelivered, x.Message.Properties, x.Message.Body, x.BodyBytes,
		&fetch{encoding: encoding, truncate: -1})
	o["seq"], o["position"], o["state"] = uint64(x.Seq), x.Position, x.State.String()
	o["persistent"], o["expired"], o["deadline"] = x.Persistent, x.Expired, nil
	if x.Deadline != 0 {
		o["deadline"] = q.api.b.UnixMillis(x.Deadline)
	}
	return o
}
