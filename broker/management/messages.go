package management

import (
	"math"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
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

// got is a message in the answer, with the number of those behind it.
type got struct {
	deadletters.Message
	Behind int `json:"message_count"`
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
	list := []got{}
	err = r.Operations.Get(r.HTTP.Context(), r.Actor, get, func(d *broker.Delivery) {
		m := broker.Browsed{Message: d.Message, Redelivered: d.Redelivered, BodyBytes: len(d.Message.Body)}
		if want.Truncate >= 0 {
			m.Message.Body = m.Message.Body[:min(want.Truncate, m.BodyBytes)]
		}
		list = append(list, got{messages.MessageOf(&m, want.Encoding), d.Ready})
	})
	if err != nil {
		return prefixed(err)
	}
	return r.Answer(list)
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

// peeked is a message in the answer, with its place.
type peeked struct {
	deadletters.Queued
	Position   int    `json:"position"`
	Expired    bool   `json:"expired"`
	WaitsUntil *int64 `json:"waits_until,omitempty"`
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
	list := []peeked{}
	for i := range found {
		m := &found[i]
		one := peeked{Queued: messages.QueuedOf(r.api.b, &m.Browsed, want.Encoding), Position: m.Position, Expired: m.Expired}
		if m.WaitsUntil != 0 {
			one.WaitsUntil = new(r.api.b.UnixMillis(m.WaitsUntil))
		}
		list = append(list, one)
	}
	return r.Answer(list)
}
