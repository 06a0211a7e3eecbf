package management

import (
	"math"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
	"curfew/broker/management/rest"
	"curfew/broker/operate"
	"curfew/broker/operate/messages"
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
