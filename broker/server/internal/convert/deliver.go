package convert

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
)

// Delivery is a message that goes to a consumer of AMQP 1.0.
type Delivery struct {
	Exchange, RoutingKey, Properties, Body []byte // Properties is a raw list
	Redelivered                            bool
	Failed                                 uint16 // earlier deliveries that failed
}

// Append appends a message as the sections of AMQP 1.0.
func Append(b []byte, d *Delivery) []byte {
	p, h := readStored(d.Properties)
	h.FirstAcquirer, h.DeliveryCount = !d.Redelivered, uint32(d.Failed)
	b = h.Append(b)
	_, head := p.Headers[headHeader]
	whole, kept := appendBare(appendAnnotations(b, d, &p, head), &p, d.Body, false)
	if head && !kept {
		whole, _ = appendBare(appendAnnotations(b, d, &p, false), &p, d.Body, false)
	}
	return whole
}

// readStored reads a raw property list, which the broker has checked, and what a header of AMQP 1.0 says of it.
func readStored(raw []byte) (amqp.Properties, amqp10.Header) {
	p, err := amqp.ParseProperties(raw, amqp.Limits{})
	if err != nil {
		p = amqp.Properties{}
	}
	h := amqp10.Header{Durable: p.DeliveryMode == 2, Priority: 4}
	if p.Priority != 0 || p.Has&amqp.HasPriority != 0 {
		h.Priority = p.Priority
	}
	if p.Expiration != "" {
		if ttl, err := strconv.ParseUint(p.Expiration, 10, 32); err == nil {
			h.TTL = amqp10.Uint(uint32(ttl))
		}
	}
	return p, h
}

// appendBare appends the bare message and its footer: as they were sent, if they were kept, else from the properties, which say all. What was
// kept is examined, since a client of 0-9-1 can write any header.
func appendBare(b []byte, p *amqp.Properties, body []byte, bus bool) (_ []byte, kept bool) {
	start, footer := len(b), keptFooter(p)
	if head, is := p.Headers[headHeader].([]byte); is {
		b = append(append(append(b, head...), body...), footer...)
		m, err := amqp10.Split(b[start:])
		if err == nil && len(m.Bare) == len(b)-start && (len(m.Data) == len(body) && len(m.Footer) == len(footer) && m.Data != nil || m.Data == nil && len(m.Body) == len(body)) {
			return b, true
		}
	}
	return append(append(appendHead(b[:start], p, body, bus), body...), footer...), false
}

// keptFooter is the footer of a body that is one data section; any other body ends with its own.
func keptFooter(p *amqp.Properties) []byte {
	footer, _ := p.Headers[footerHeader].([]byte)
	if m, err := amqp10.Split(footer); err != nil || len(m.Footer) != len(footer) || p.Type == encodedType {
		return nil
	}
	return footer
}

// appendHead appends what a bare message has in front of its body. bus: for a client of Service Bus, whose addresses are plain names.
func appendHead(b []byte, p *amqp.Properties, body []byte, bus bool) []byte {
	if p.Headers == nil && p.Timestamp == 0 && p.ContentType == "" && p.ContentEncoding == "" && p.CorrelationID == "" &&
		p.ReplyTo == "" && p.MessageID == "" && p.Type == "" && p.UserID == "" && p.AppID == "" { // as are most messages that come very fast
		return amqp10.BeginData(b, len(body))
	}
	var out amqp10.Properties
	set := func(v *any, s string) {
		switch {
		case s == "":
		case !utf8.ValidString(s):
			*v = []byte(s)
		case bus:
			*v = s
		default:
			*v = idOf(s)
		}
	}
	set(&out.MessageID, p.MessageID)
	set(&out.CorrelationID, p.CorrelationID)
	if p.ReplyTo != "" && !bus {
		out.ReplyTo = "/queues/" + url.PathEscape(p.ReplyTo)
	} else if p.ReplyTo != "" && utf8.ValidString(p.ReplyTo) {
		out.ReplyTo = p.ReplyTo
	}
	if p.AppID != "" && utf8.ValidString(p.AppID) { // as everywhere: a string must be UTF-8
		out.GroupID = p.AppID
	}
	if p.UserID != "" {
		out.UserID = []byte(p.UserID)
	}
	if utf8.ValidString(p.ContentType + p.ContentEncoding) {
		out.ContentType, out.ContentEncoding = p.ContentType, p.ContentEncoding
	}
	if p.Timestamp != 0 {
		out.CreationTime = amqp10.Timestamp(p.Timestamp * 1000)
	}
	if at, ok := amqp.Integer(p.Headers["x-expires-at"]); ok {
		out.AbsoluteExpiry = amqp10.Timestamp(at)
	}
	b = out.Append(b)
	if m := simple(p.Headers); len(m) > 0 {
		b = amqp10.AppendSection(b, amqp10.SectionApplicationProperties, m)
	}
	if p.Type == encodedType {
		if m, err := amqp10.Split(body); err == nil && len(m.Body) == len(body) {
			return b
		}
	}
	return amqp10.BeginData(b, len(body))
}

// appendAnnotations appends where a message was published to, and its type and headers that begin with x-. kept: its bare message
// has its ids.
func appendAnnotations(b []byte, d *Delivery, p *amqp.Properties, kept bool) []byte {
	b, start := amqp10.BeginMap(amqp10.BeginSection(b, amqp10.SectionMessageAnnotations))
	b = appendText(amqp10.AppendSymbol(b, "x-exchange"), d.Exchange)
	b = appendText(amqp10.AppendSymbol(b, "x-routing-key"), d.RoutingKey)
	n := 2
	add := func(key string, v any) {
		b = amqp10.Append(amqp10.AppendSymbol(b, key), Value(v))
		n++
	}
	history, died := p.Headers["x-death"].([]any)
	if died {
		b = amqp10.Append(amqp10.AppendSymbol(b, deathsAnnotation), deaths(history))
		n++
	}
	cc, _ := p.Headers["CC"].([]any)
	typed := p.Type != "" && p.Type != encodedType
	if cc != nil {
		add(ccAnnotation, cc)
	}
	if typed {
		add(typeAnnotation, p.Type)
	}
	for _, key := range keysOf(p.Headers) {
		switch {
		case !strings.HasPrefix(key, "x-") || strings.HasPrefix(key, keptPrefix) || kept && (key == messageIDHeader || key == correlationIDHeader):
		case key == deathsAnnotation && died || key == ccAnnotation && cc != nil || key == typeAnnotation && typed: // it has them
		default:
			add(key, p.Headers[key])
		}
	}
	return amqp10.EndMap(b, start, n)
}

// appendText appends a string, or a binary if it is not UTF-8.
func appendText(b, text []byte) []byte {
	if utf8.Valid(text) {
		return amqp10.AppendText(b, text)
	}
	return amqp10.Append(b, text)
}

// deathsAnnotation is x-death as RabbitMQ 4 says it over AMQP 1.0.
const deathsAnnotation = "x-opt-deaths"

// deaths is the history of a dead letter. A client may have made it up.
func deaths(history []any) (all amqp10.Array) {
	for _, e := range history {
		entry, _ := e.(amqp.Table)
		var m amqp10.Map
		add := func(key string, v any) { m = append(m, amqp10.Entry{Key: amqp10.Symbol(key), Value: v}) }
		expiration, _ := entry["original-expiration"].(string)
		if ttl, err := strconv.ParseUint(expiration, 10, 32); err == nil {
			add("ttl", uint32(ttl))
		}
		add("queue", Value(entry["queue"]))
		reason, _ := entry["reason"].(string)
		add("reason", amqp10.Symbol(reason))
		count, _ := amqp.Integer(entry["count"])
		add("count", uint64(count))
		add("first-time", Value(entry["time"]))
		add("last-time", Value(cmp.Or(entry["last-time"], entry["time"])))
		add("exchange", Value(entry["exchange"]))
		keys, _ := Value(entry["routing-keys"]).(amqp10.List)
		add("routing-keys", amqp10.Array(keys))
		all = append(all, m)
	}
	return all
}

// keysOf are the keys of a table in their order, without those that are not UTF-8. Most messages have none.
func keysOf(t amqp.Table) (keys []string) {
	for key := range t {
		if utf8.ValidString(key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// simple are the headers that can be application properties, which have no tables and arrays.
func simple(headers amqp.Table) (m amqp10.Map) {
	for _, key := range keysOf(headers) {
		switch v := Value(headers[key]).(type) {
		case amqp10.Map, amqp10.List:
		default:
			if !strings.HasPrefix(key, "x-") {
				m = append(m, amqp10.Entry{Key: key, Value: v})
			}
		}
	}
	return m
}

// Value is a value of a header as AMQP 1.0 has it; a table becomes a map in the order of its keys.
func Value(v any) any {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return []byte(v)
		}
	case int:
		return int64(v)
	case amqp.Timestamp:
		return amqp10.Timestamp(v * 1000)
	case amqp.Decimal:
		return nil
	case amqp.Table:
		m := amqp10.Map{}
		for _, key := range keysOf(v) {
			m = append(m, amqp10.Entry{Key: key, Value: Value(v[key])})
		}
		return m
	case []any:
		l := amqp10.List{}
		for _, e := range v {
			l = append(l, Value(e))
		}
		return l
	}
	return v
}
