package management

import (
	"math"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
	"curfew/broker/queue"
)

// fetch is the body of a get.
type fetch struct {
	Mode     string `json:"ackmode"`
	Encoding string `json:"encoding" default:"auto"`
	Count    int    `json:"count"`                 // <0: all messages, as in RabbitMQ
	Truncate int    `json:"truncate" default:"-1"` // <0: whole
}

// ackModes has how each mode settles the messages.
var ackModes = map[string]operate.GetRequest{
	"ack_requeue_true":     {After: broker.PutBack},
	"reject_requeue_true":  {After: broker.PutBack},
	"ack_requeue_false":    {NoAck: true},
	"reject_requeue_false": {After: broker.Reject},
}

// getMessages takes messages from the queue, and puts them back or not, as the mode says.
func getMessages(r *request) error {
	f, err := r.Fields("ackmode", "count", "encoding")
	if err != nil {
		return err
	}
	want, err := operate.Read[fetch](f)
	if err != nil {
		return err
	}
	get, known := ackModes[want.Mode]
	if !known {
		return rest.Bad("Unsupported ackmode. Please use ack_requeue_true, reject_requeue_true, ack_requeue_false or reject_requeue_false.")
	}
	if err := checkEncoding(want.Encoding); err != nil {
		return err
	}
	get.Queue, get.Count, get.Memory = r.QueueNamed(), want.Count, r.Account
	if want.Count < 0 {
		get.Count = math.MaxInt
	}
	list := []object{}
	err = r.Operations.Get(r.HTTP.Context(), r.Actor, get, func(d *broker.Delivery) {
		m := broker.Browsed{Message: d.Message, Redelivered: d.Redelivered, BodyBytes: len(d.Message.Body)}
		if want.Truncate >= 0 {
			m.Message.Body = m.Message.Body[:min(want.Truncate, m.BodyBytes)]
		}
		o := messageObject(&m, want.Encoding)
		o["message_count"] = d.Ready
		list = append(list, o)
	})
	if err != nil {
		return prefixed(err)
	}
	return r.Answer(list)
}

// messageObject returns a message in the form of RabbitMQ's get. encoding is the encoding of the body: "base64"; with any other value a UTF-8 body is text.
func messageObject(m *broker.Browsed, encoding string) object {
	payload, encoding := messages.Encoded(m.Message.Body, encoding)
	return object{
		"payload_bytes": m.BodyBytes, "redelivered": m.Redelivered, "exchange": string(m.Message.Exchange), "routing_key": string(m.Message.RoutingKey),
		"properties": messages.PropertiesOf(m.Message.Properties), "payload": payload, "payload_encoding": encoding,
	}
}

// prefixed keeps the code's name before the text, as RabbitMQ does here.
func prefixed(err error) error {
	if e, ok := err.(*amqp.Exception); ok && e.Code == amqp.NotFound {
		return &rest.Problem{Status: 404, Kind: "not_found", Reason: e.Text}
	}
	return err
}

func checkEncoding(encoding string) error {
	if encoding != "auto" && encoding != "base64" {
		return rest.Bad("Unsupported encoding. Please use auto or base64.")
	}
	return nil
}

// look is the body of a peek.
type look struct {
	Encoding string `json:"encoding" default:"auto"`
	From     string `json:"from" default:"head"`
	State    string `json:"state"`
	Offset   int    `json:"offset"`
	Count    int    `json:"count" default:"10"`
	Truncate int    `json:"truncate" default:"4096"`
}

// peek shows messages and changes nothing.
func peek(r *request) error {
	f, err := r.Fields()
	if err != nil {
		return err
	}
	want, err := operate.Read[look](f)
	if err == nil {
		err = checkEncoding(want.Encoding)
	}
	if err != nil {
		return err
	}
	if want.From != "head" && want.From != "tail" {
		return rest.Bad("Unsupported from. Please use head or tail.")
	}
	state, known := map[string]queue.State{"": 0, "ready": queue.Ready, "unacked": queue.Unacked, "waiting": queue.Waiting}[want.State]
	if !known {
		return rest.Bad("Unsupported state. Please use ready, unacked or waiting.")
	}
	found, err := r.Operations.Peek(r.HTTP.Context(), r.Actor, operate.PeekRequest{
		Queue: r.QueueNamed(), FromTail: want.From == "tail", State: state, Offset: want.Offset, Count: want.Count, BodyBytes: want.Truncate, Memory: r.Account,
	})
	if err != nil {
		return err
	}
	list := []object{}
	for i := range found {
		list = append(list, peekObject(r, &found[i], want.Encoding))
	}
	return r.Answer(list)
}

// peekObject returns a message in the form of a get, with its state.
func peekObject(r *request, m *operate.Message, encoding string) object {
	o := messageObject(&m.Browsed, encoding)
	o["seq"], o["position"], o["state"] = uint64(m.Seq), m.Position, m.State.String()
	o["persistent"], o["expired"], o["deadline"] = m.Persistent, m.Expired, nil
	if m.Deadline != 0 {
		o["deadline"] = m.DeadlineMillis
	}
	if m.WaitsUntil != 0 {
		o["waits_until"] = r.api.b.UnixMillis(m.WaitsUntil)
	}
	return o
}
