package convert

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/amqp10"
)

const (
	headHeader = "x-amqp-1.0-head"
	// scheduledHeader is when a message is enqueued, in Unix ms.
	scheduledHeader = "x-scheduled-enqueue-time"
	encodedType     = "amqp-1.0" // of a body that is stored as its sections

	// maxHead bounds all of a message but its body: a consumer of 0-9-1 gets it in one frame.
	maxHead = 48 << 10
)

var (
	errHead  = errors.New("the properties and annotations of the message take more than 48 KiB")
	errShort = errors.New("a text in the properties of the message is longer than 255 octets")
)

// Publish converts a message that a client has sent. properties are a raw property list of 0-9-1 in b's
// capacity; body aliases the message. to is the property of that name. bus: it comes from a client of Service
// Bus, which makes it persistent, and lets it go only where the client has a token for. filtered: it gets headers for
// the filters of a topic. An error is for the client.
func Publish(b, message []byte, bus, filtered bool) (properties, body []byte, to string, err error) {
	m, err := amqp10.Split(message)
	if err != nil {
		return nil, nil, "", err
	}
	if len(message)-len(m.Body) > maxHead {
		return nil, nil, "", errHead
	}
	var h amqp10.Header
	var p amqp10.Properties
	if err = h.Read(m.Header); err == nil {
		err = p.Read(m.Properties)
	}
	if err != nil {
		return nil, nil, "", err
	}
	out := amqp.Properties{DeliveryMode: 1}
	if h.Durable || bus {
		out.DeliveryMode = 2
	}
	if h.Priority != 4 {
		out.Priority, out.Has = h.Priority, amqp.HasPriority
	}
	if h.TTL.Set {
		out.Expiration = strconv.FormatUint(uint64(h.TTL.Value), 10)
	}
	fromProperties(&out, &p)
	if err = fromMap(&out, m.MessageAnnotations, true, bus); err == nil {
		err = fromMap(&out, m.ApplicationProperties, false, bus)
	}
	if err != nil {
		return nil, nil, "", err
	}
	if filtered {
		addSystem(&out, &p)
	}
	body = m.Data
	if m.Data == nil {
		out.Type, body = encodedType, m.Body
	}
	if head := m.Bare[:len(m.Bare)-len(body)]; string(head) != string(appendHead(b, &out, body)[len(b):]) {
		setHeader(&out, headHeader, head)
	}
	for _, s := range [...]string{out.ContentType, out.ContentEncoding, out.CorrelationID, out.ReplyTo, out.MessageID, out.UserID, out.AppID} {
		if len(s) > 255 {
			return nil, nil, "", errShort
		}
	}
	to, _ = p.To.(string)
	return out.Append(b), body, to, nil
}

func fromProperties(out *amqp.Properties, p *amqp10.Properties) {
	out.MessageID, out.CorrelationID = idText(p.MessageID), idText(p.CorrelationID)
	out.ReplyTo, _ = p.ReplyTo.(string)
	out.AppID, _ = p.GroupID.(string)
	out.UserID = string(p.UserID)
	out.ContentType, out.ContentEncoding = p.ContentType, p.ContentEncoding
	if at, ok := p.CreationTime.(amqp10.Timestamp); ok && at >= 0 {
		out.Timestamp = amqp.Timestamp(at / 1000)
	}
	if at, ok := p.AbsoluteExpiry.(amqp10.Timestamp); ok {
		setHeader(out, "x-expires-at", int64(at))
	}
}

// addSystem adds headers with the properties that correlation filters compare (servicebus.Correlation).
func addSystem(out *amqp.Properties, p *amqp10.Properties) {
	for _, x := range [...]struct {
		name  string
		value any
	}{
		{"CorrelationId", out.CorrelationID}, {"MessageId", out.MessageID}, {"To", p.To}, {"ReplyTo", p.ReplyTo}, {"Label", p.Subject},
		{"SessionId", p.GroupID}, {"ReplyToSessionId", p.ReplyToGroupID}, {"ContentType", p.ContentType},
	} {
		if text, _ := x.value.(string); text != "" && len(text) <= 255 {
			setHeader(out, "x-sys-"+x.name, text)
		}
	}
}

func setHeader(p *amqp.Properties, key string, v any) {
	if p.Headers == nil {
		p.Headers = amqp.Table{}
	}
	p.Headers[key] = v
}

// idText is a message-id or a correlation-id as a text.
func idText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case uint64:
		return strconv.FormatUint(v, 10)
	case []byte:
		return string(v)
	case amqp10.UUID:
		x := hex.EncodeToString(v[:])
		return strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:]}, "-")
	}
	return ""
}

// fromMap adds the entries of a section to the headers: of annotations those that begin with x-, of
// application properties all others, since the broker obeys headers that begin with x-, and
// RabbitMQ takes them from annotations only. bus: none that has the broker send something elsewhere.
func fromMap(out *amqp.Properties, section []byte, annotations, bus bool) error {
	if section == nil {
		return nil
	}
	v, _, err := amqp10.Parse(section)
	m, ok := v.(amqp10.Map)
	if err != nil || !ok && v != nil {
		return amqp10.ErrMalformed
	}
	for _, e := range m {
		key, ok := e.Key.(string)
		if s, is := e.Key.(amqp10.Symbol); is && annotations {
			key, ok = string(s), true
		}
		if !ok || len(key) > 255 || strings.HasPrefix(key, "x-") != annotations || key == headHeader {
			continue
		}
		if bus && (annotations && !strings.HasPrefix(key, "x-opt-") || key == "CC" || key == "BCC") {
			continue
		}
		if at, is := e.Value.(amqp10.Timestamp); is && annotations && key == "x-opt-scheduled-enqueue-time" {
			setHeader(out, scheduledHeader, int64(at)) // of Service Bus, in ms
		} else if v, ok := fromValue(e.Value, 0); ok {
			setHeader(out, key, v)
		}
	}
	return nil
}

// fromValue is a value as a field of 0-9-1; false: none is like it.
func fromValue(v any, depth int) (any, bool) {
	if depth > 8 {
		return nil, false
	}
	switch v := v.(type) {
	case nil, bool, int8, uint8, int16, uint16, int32, uint32, int64, float32, float64, string, []byte:
		return v, true
	case uint64:
		return int64(v), v <= math.MaxInt64
	case amqp10.Symbol:
		return string(v), true
	case amqp10.Timestamp:
		return amqp.Timestamp(v / 1000), v >= 0
	case amqp10.UUID:
		return idText(v), true
	case amqp10.Char:
		return string(rune(v)), true
	case amqp10.List:
		return fromList(v, depth), true
	case amqp10.Array:
		return fromList(v, depth), true
	case amqp10.Map:
		t := amqp.Table{}
		for _, e := range v {
			key, _ := fromValue(e.Key, depth+1)
			if name, ok := key.(string); ok && len(name) < 256 {
				if v, ok := fromValue(e.Value, depth+1); ok {
					t[name] = v
				}
			}
		}
		return t, true
	}
	return nil, false
}

func fromList(all []any, depth int) []any {
	out := make([]any, 0, len(all))
	for _, e := range all {
		if v, ok := fromValue(e, depth+1); ok {
			out = append(out, v)
		}
	}
	return out
}
