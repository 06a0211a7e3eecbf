package management

import (
	"encoding/base64"
	"math"
	"slices"
	"unicode/utf8"

	"curfew/broker/management/rest"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/broker/queue"
)

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

// getMessages takes messages from the queue and puts them back or not, as asked.
func getMessages(r *request) error {
	f, err := r.Fields()
	if err == nil {
		err = f.Need("ackmode", "count", "encoding")
	}
	if err != nil {
		return err
	}
	want, err := readFetch(f)
	if err != nil {
		return err
	}
	list := []object{}
	err = r.api.Operations.Get(r.Context(), r.Actor, operate.GetRequest{
		Queue: r.queueNamed(), Count: want.count, NoAck: want.noAck, After: want.after, Memory: r.Account,
	}, func(d *broker.Delivery) {
		o := messageObject(string(d.Message.Exchange), string(d.Message.RoutingKey), d.Redelivered, d.Message.Properties, d.Message.Body, len(d.Message.Body), &want)
		o["message_count"] = d.Ready
		list = append(list, o)
	})
	if err != nil {
		return prefixed(err)
	}
	return r.Answer(list)
}

// prefixed keeps the code's name before the text, as RabbitMQ has it here.
func prefixed(err error) error {
	if e, ok := err.(*amqp.Exception); ok && e.Code == amqp.NotFound {
		return rest.NewProblem(404, "not_found", e.Text)
	}
	return err
}

func readFetch(f rest.Fields) (fetch, error) {
	mode, err := f.Text("ackmode", "")
	if err != nil {
		return fetch{}, err
	}
	want, ok := ackModes[mode]
	if !ok {
		return fetch{}, rest.Bad("Unsupported ackmode. Please use ack_requeue_true, reject_requeue_true, ack_requeue_false or reject_requeue_false.")
	}
	if want.encoding, err = readEncoding(f); err != nil {
		return fetch{}, err
	}
	count, err := f.Integer("count", 0)
	if err != nil {
		return fetch{}, err
	}
	truncate, err := f.Integer("truncate", -1)
	want.count, want.truncate = int(count), int(truncate)
	if count < 0 { // all there are, as in RabbitMQ
		want.count = math.MaxInt
	}
	return want, err
}

func readEncoding(f rest.Fields) (string, error) {
	e, err := f.Text("encoding", "auto")
	if err == nil && e != "auto" && e != "base64" {
		err = rest.Bad("Unsupported encoding. Please use auto or base64.")
	}
	return e, err
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
	add(amqp.HasHeaders, "headers", rest.JSONOf(p.Headers))
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

// What a peek or a search shows unless it says otherwise.
const (
	peekCount = 10
	peekBytes = 4096
)

// peek shows messages and leaves everything as it is.
func peek(r *request) error {
	f, err := r.Fields()
	if err != nil {
		return err
	}
	want, encoding, err := readPeek(f)
	if err != nil {
		return err
	}
	want.Queue, want.Memory = r.queueNamed(), r.Account
	found, err := r.api.Operations.Peek(r.Context(), r.Actor, want)
	if err != nil {
		return err
	}
	list := []object{}
	for i := range found {
		list = append(list, peekObject(&found[i], encoding))
	}
	return r.Answer(list)
}

func readPeek(f rest.Fields) (p operate.PeekRequest, encoding string, err error) {
	if encoding, err = readEncoding(f); err != nil {
		return p, "", err
	}
	from, _ := f.Text("from", "head")
	state, _ := f.Text("state", "")
	states := map[string]queue.State{"": 0, "ready": queue.Ready, "unacked": queue.Unacked}
	if !slices.Contains([]string{"head", "tail"}, from) {
		return p, "", rest.Bad("Unsupported from. Please use head or tail.")
	}
	if _, ok := states[state]; !ok {
		return p, "", rest.Bad("Unsupported state. Please use ready or unacked.")
	}
	p = operate.PeekRequest{FromTail: from == "tail", State: states[state]}
	for _, n := range []struct {
		key    string
		to     *int
		absent int64
	}{{"offset", &p.Offset, 0}, {"count", &p.Count, peekCount}, {"truncate", &p.BodyBytes, peekBytes}} {
		v, err := f.Integer(n.key, n.absent)
		if err != nil {
			return p, "", err
		}
		*n.to = int(v)
	}
	return p, encoding, nil
}

// peekObject is a message as get shows it, with its state.
func peekObject(m *operate.Message, encoding string) object {
	o := messageObject(string(m.Message.Exchange), string(m.Message.RoutingKey), m.Redelivered, m.Message.Properties, m.Message.Body, m.BodyBytes,
		&fetch{encoding: encoding, truncate: -1})
	o["seq"], o["position"], o["state"] = uint64(m.Seq), m.Position, m.State.String()
	o["persistent"], o["expired"], o["deadline"] = m.Persistent, m.Expired, nil
	if m.Deadline != 0 {
		o["deadline"] = m.DeadlineMillis
	}
	return o
}
