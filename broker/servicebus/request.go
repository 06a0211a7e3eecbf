package servicebus

import (
	"strings"

	"curfew/broker/amqp10"
	"curfew/broker/policy"
)

// The addresses of the nodes that answer requests.
const (
	CBS        = "$cbs"
	management = "/$management"

	// DeferredSuffix ends the name of the queue with the deferred messages of another.
	DeferredSuffix = policy.DeferredSuffix
)

// Managed returns the entity that a $management address belongs to.
func Managed(address string) (entity string, is bool) {
	if n := len(address) - len(management); n > 0 && strings.EqualFold(address[n:], management) {
		return address[:n], true
	}
	return address, false
}

// Request is a request to $cbs or to the $management of an entity.
type Request struct {
	ReplyTo string // the target address or the name of the link that the answer goes to
	id      any
	fields  amqp10.Map
	body    any
	cbs     bool
}

// ParseRequest parses a message that was sent to a node. The request does not alias it.
func ParseRequest(message []byte, cbs bool) (*Request, error) {
	m, err := amqp10.Split(append([]byte(nil), message...))
	if err != nil {
		return nil, err
	}
	var p amqp10.Properties
	if err := p.Read(m.Properties); err != nil {
		return nil, err
	}
	r := &Request{id: p.MessageID, cbs: cbs}
	r.ReplyTo, _ = p.ReplyTo.(string)
	if m.ApplicationProperties != nil {
		fields, _, err := amqp10.Parse(m.ApplicationProperties)
		if err != nil {
			return nil, err
		}
		r.fields, _ = fields.(amqp10.Map)
	}
	if len(m.Body) > 3 && m.Body[2] == amqp10.SectionValue { // its descriptor has one octet
		r.body, _, err = amqp10.Parse(m.Body[3:])
	}
	return r, err
}

// Field is an application property; "": it is absent, or no text.
func (r *Request) Field(name string) string {
	s, _ := r.fields.Get(name).(string)
	return s
}

// Operation is what is asked for, without its prefix.
func (r *Request) Operation() string {
	return strings.TrimPrefix(r.Field("operation"), "com.microsoft:")
}

// Text is the body, if it is a text.
func (r *Request) Text() string {
	s, _ := r.body.(string)
	return s
}

// Arg is a value of the body, which is a map; nil: it is absent.
func (r *Request) Arg(name string) any {
	m, _ := r.body.(amqp10.Map)
	return m.Get(name)
}

// List is an argument that is a list or an array.
func (r *Request) List(name string) []any {
	switch v := r.Arg(name).(type) {
	case amqp10.List:
		return v
	case amqp10.Array:
		return v
	}
	return nil
}

// Number is an argument that is an integer.
func (r *Request) Number(name string) int64 { return Number(r.Arg(name)) }

// Number is an integer of any width; 0: it is none.
func Number(v any) int64 {
	switch v := v.(type) {
	case int32:
		return int64(v)
	case int64:
		return v
	case uint32:
		return int64(v)
	case uint64:
		return int64(v)
	}
	return 0
}

// Answer is what becomes of a request.
type Answer struct {
	Status      int32
	Description string
	Condition   string     // of an error
	Body        amqp10.Map // nil: there is none
}

// Message is the answer as the message that the client gets.
func (r *Request) Message(a Answer) []byte {
	b := amqp10.AppendPerformative(nil, &amqp10.Header{Priority: 4})
	b = amqp10.AppendPerformative(b, &amqp10.Properties{CorrelationID: r.id})
	status, description := "statusCode", "statusDescription"
	if r.cbs {
		status, description = "status-code", "status-description"
	}
	fields := amqp10.Map{{Key: status, Value: a.Status}, {Key: description, Value: a.Description}}
	if a.Condition != "" {
		fields = append(fields, amqp10.Entry{Key: "errorCondition", Value: amqp10.Symbol(a.Condition)})
	}
	b = amqp10.AppendSection(b, amqp10.SectionApplicationProperties, fields)
	if a.Body == nil {
		return amqp10.AppendSection(b, amqp10.SectionValue, nil)
	}
	return amqp10.AppendSection(b, amqp10.SectionValue, a.Body)
}
