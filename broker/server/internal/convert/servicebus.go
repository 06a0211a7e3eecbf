package convert

import (
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
)

// States of a message (Service Bus: Message browsing).
const (
	Active int32 = iota
	Deferred
	Scheduled
)

// The headers of the copy of a deferred message, which no client can set: what it had in its queue.
const (
	numberHeader   = "x-opt-sequence-number"
	enqueuedHeader = "x-opt-enqueued-time"
	failedHeader   = "x-opt-delivery-count"
)

// Defer makes the properties of the copy of a message that is deferred.
func (m *ServiceBus) Defer(p *amqp.Properties) {
	headers := amqp.Table{}
	maps.Copy(headers, p.Headers)
	for _, name := range []string{"CC", "BCC", "x-delay", scheduledHeader, "x-expires-at"} {
		delete(headers, name)
	}
	headers[numberHeader], headers[enqueuedHeader], headers[failedHeader] = m.Number, m.EnqueuedAt, int64(m.Failed)
	if m.ExpiresAt != 0 { // it has none in a dead-letter queue
		headers["x-expires-at"] = m.ExpiresAt
	}
	p.Headers, p.Expiration, p.Has = headers, "", p.Has&^amqp.HasExpiration
}

// WasDeferred reads what a message had in its queue before it was deferred.
func (m *ServiceBus) WasDeferred() {
	p, _ := readStored(m.Properties)
	m.State = Deferred
	m.Number, _ = amqp.Integer(p.Headers[numberHeader])
	m.EnqueuedAt, _ = amqp.Integer(p.Headers[enqueuedHeader])
	failed, _ := amqp.Integer(p.Headers[failedHeader])
	m.Failed += uint16(failed)
}

// ServiceBus is a message that goes to a client of Service Bus. Instants are Unix ms; 0: none.
type ServiceBus struct {
	Properties, Body      []byte // Properties is a raw list
	Number                int64
	State                 int32
	Failed                uint16 // deliveries that failed
	EnqueuedAt, ExpiresAt int64
	LockedUntil           int64
	LockToken             *amqp10.UUID // for an answer to a request; nil: none
}

// ReadHeaders takes the instants from the headers that a delivery has by x-delivery-deadline. token is its
// x-lock-token; "": none.
func (m *ServiceBus) ReadHeaders() (token string) {
	p, _ := readStored(m.Properties)
	m.EnqueuedAt, _ = amqp.Integer(p.Headers["x-enqueued-at"])
	m.ExpiresAt, _ = amqp.Integer(p.Headers["x-expires-at"])
	m.LockedUntil, _ = amqp.Integer(p.Headers["x-locked-until"])
	token, _ = p.Headers["x-lock-token"].(string)
	return token
}

// Append appends the message as its sections.
func (m *ServiceBus) Append(b []byte) []byte {
	p, h := readStored(m.Properties)
	h.DeliveryCount = uint32(m.Failed)
	if m.ExpiresAt != 0 && m.EnqueuedAt != 0 { // clients add it to the enqueued time
		h.TTL = amqp10.Uint(uint32(min(max(m.ExpiresAt-m.EnqueuedAt, 0), math.MaxUint32)))
	}
	b = amqp10.AppendPerformative(b, &h)
	if m.LockToken != nil {
		b = amqp10.AppendSection(b, amqp10.SectionDeliveryAnnotations, amqp10.Map{{Key: amqp10.Symbol("x-opt-lock-token"), Value: *m.LockToken}})
	}
	b = amqp10.AppendSection(b, amqp10.SectionMessageAnnotations, m.annotations(p.Headers))
	if p.MessageID == "" {
		p.MessageID = strconv.FormatInt(m.Number, 16) // JavaScript's client cannot settle a message without one
	}
	whole, kept := appendBare(b, &p, m.Body, true)
	if kept {
		return complete(whole, len(b), &p)
	}
	return whole
}

// complete gives a bare message, which begins at start, a message-id, and the headers that the broker has added
// since it was sent, such as the reason of a dead letter. One that needs neither stays as it was sent.
func complete(b []byte, start int, p *amqp.Properties) []byte {
	m, _ := amqp10.Split(b[start:]) // it is valid
	var out amqp10.Properties
	var head []byte
	changed := false
	if err := out.Read(m.Properties); err == nil && out.MessageID == nil {
		out.MessageID, changed = p.MessageID, true
		head = amqp10.AppendPerformative(head, &out)
	} else {
		head = append(amqp10.BeginSection(head, amqp10.SectionProperties), m.Properties...)
	}
	fields := fieldsOf(&m)
	sent := len(fields)
	for _, e := range simple(p.Headers) {
		at := slices.IndexFunc(fields[:sent], func(f amqp10.Entry) bool { return f.Key == e.Key })
		switch {
		case at < 0:
			fields, changed = append(fields, e), true
		case strings.HasPrefix(e.Key.(string), "DeadLetter"):
			fields[at], changed = e, true
		}
	}
	if !changed {
		return b
	}
	if len(fields) > 0 {
		head = amqp10.AppendSection(head, amqp10.SectionApplicationProperties, fields)
	}
	return slices.Replace(b, start, len(b)-len(m.Body), head...)
}

// fieldsOf are the application properties of a message.
func fieldsOf(m *amqp10.Message) (fields amqp10.Map) {
	if m.ApplicationProperties != nil {
		v, _, _ := amqp10.Parse(m.ApplicationProperties)
		fields, _ = v.(amqp10.Map)
	}
	return fields
}

// maxChanges is how many octets the properties may take that a receiver sets.
const maxChanges = 16 << 10

// Modify is the raw property list of a message, from its own, with application properties that its receiver sets
// (Service Bus: properties to modify). nil: there are none, or they are too large, alone or with the others.
func Modify(properties, body []byte, changes amqp10.Map) []byte {
	p, err := amqp.ParseProperties(properties, amqp.Limits{})
	if err != nil || len(changes) == 0 || len(amqp10.Append(nil, changes)) > maxChanges {
		return nil
	}
	bare, _ := appendBare(nil, &p, body, false)
	m, err := amqp10.Split(bare)
	before := len(m.Body) - len(body) - len(keptFooter(&p))   // of the body, with a head that is kept
	if err != nil || len(m.Bare) != len(bare) || before < 0 { // a client of 0-9-1 can say of any body that it is one of 1.0
		return nil
	}
	fields := fieldsOf(&m)
	p.Headers = maps.Clone(p.Headers)
	delete(p.Headers, headHeader)
	for _, e := range changes {
		key, _ := fromValue(e.Key, 0) // a text or a symbol
		name, _ := key.(string)
		v, ok := fromValue(e.Value, 0)
		switch v.(type) {
		case amqp.Table, []any: // no application property is one
			ok = false
		}
		if !ok || name == "" || len(name) > 255 || strings.HasPrefix(name, "x-") || name == "CC" || name == "BCC" { // the broker obeys those
			continue
		}
		setHeader(&p, name, v)
		fields = append(slices.DeleteFunc(fields, func(f amqp10.Entry) bool { return f.Key == name }), amqp10.Entry{Key: name, Value: e.Value})
	}
	var head []byte
	if m.Properties != nil {
		head = append(amqp10.BeginSection(head, amqp10.SectionProperties), m.Properties...)
	}
	if len(fields) > 0 {
		head = amqp10.AppendSection(head, amqp10.SectionApplicationProperties, fields)
	}
	head = append(head, m.Body[:before]...)
	if string(head) != string(appendHead(nil, &p, body, false)) {
		setHeader(&p, headHeader, head)
	}
	if len(head) > maxHead || amqp.ValidateTable(amqp.AppendTable(nil, p.Headers), amqp.Limits{}) != nil { // as for what is published
		return nil
	}
	return p.Append(nil)
}

func (m *ServiceBus) annotations(headers amqp.Table) amqp10.Map {
	all := amqp10.Map{
		{Key: amqp10.Symbol("x-opt-sequence-number"), Value: m.Number},
		{Key: amqp10.Symbol("x-opt-enqueue-sequence-number"), Value: m.Number},
		{Key: amqp10.Symbol("x-opt-message-state"), Value: m.State},
	}
	at := func(name string, at int64) {
		if at != 0 {
			all = append(all, amqp10.Entry{Key: amqp10.Symbol(name), Value: amqp10.Timestamp(at)})
		}
	}
	at("x-opt-enqueued-time", m.EnqueuedAt)
	at("x-opt-locked-until", m.LockedUntil)
	scheduled, _ := amqp.Integer(headers[scheduledHeader])
	at("x-opt-scheduled-enqueue-time", scheduled)
	for _, key := range []string{"x-opt-partition-key", "x-opt-via-partition-key"} {
		if text, ok := headers[key].(string); ok {
			all = append(all, amqp10.Entry{Key: amqp10.Symbol(key), Value: text})
		}
	}
	return all
}

// maxBatch is how many messages may be in a batch: a transaction of that size is one record of the journal.
const maxBatch = 1 << 16

var errBatch = errors.New("the batch has more than 65,536 messages")

// Batch returns the messages of a batch (message format 0x80013700): each is a data section.
func Batch(message []byte) (all [][]byte, err error) {
	m, err := amqp10.Split(message)
	for b := m.Body[:len(m.Body)-len(m.Footer)]; err == nil && len(b) > 0; {
		var v any
		if v, b, err = amqp10.Parse(b); err == nil {
			d, _ := v.(amqp10.Described)
			one, ok := d.Value.([]byte)
			if !ok {
				return nil, amqp10.ErrMalformed
			}
			if all = append(all, one); len(all) > maxBatch {
				return nil, errBatch
			}
		}
	}
	return all, err
}
