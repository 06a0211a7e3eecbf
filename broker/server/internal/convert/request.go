package convert

import (
	"strconv"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
)

// Request is HTTP over AMQP, as the clients of RabbitMQ 4 use it: the method is the subject of a
// message, the path is in to, and the body is an amqp-value.
type Request struct {
	Method, Path string
	Body         any // nil: none

	id any
}

// ParseRequest parses a message that is a request.
func ParseRequest(message []byte) (*Request, error) {
	m, err := amqp10.Split(message)
	var p amqp10.Properties
	if err == nil {
		err = p.Read(m.Properties)
	}
	if err != nil {
		return nil, err
	}
	r := &Request{id: p.MessageID}
	r.Method, _ = p.Subject.(string)
	r.Path, _ = p.To.(string)
	if m.Body == nil {
		return r, nil
	}
	body, _, err := amqp10.Parse(m.Body)
	if d, is := body.(amqp10.Described); is && d.Descriptor == uint64(amqp10.SectionValue) {
		r.Body = d.Value
	}
	return r, err
}

// Answer is the message that answers the request.
func (r *Request) Answer(status int, body any) []byte {
	p := amqp10.Properties{Subject: strconv.Itoa(status), CorrelationID: r.id}
	b := p.Append(nil)
	b = amqp10.AppendSection(b, amqp10.SectionApplicationProperties, amqp10.Map{{Key: "http:response", Value: "1.1"}})
	return amqp10.AppendSection(b, amqp10.SectionValue, body)
}

// Table is a map as a table; false: it is not a map, or not all of it can be in a table.
func Table(v any) (amqp.Table, bool) {
	m, ok := v.(amqp10.Map)
	t, whole := fromTable(m, 0)
	return t, ok && whole
}
