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
	// What is kept for consumers of AMQP 1.0 only. The name of the second, and what the prefix reserves, are RabbitMQ's.
	keptPrefix   = "x-amqp-1.0-"
	headHeader   = keptPrefix + "head"
	footerHeader = keptPrefix + "footer"
	// The headers of ids that are no short texts, and the annotations for what AMQP 1.0 has no property for, as in RabbitMQ 4.
	messageIDHeader, correlationIDHeader = "x-message-id", "x-correlation-id"
	typeAnnotation, ccAnnotation         = "x-basic-type", "x-cc"
	uuidScheme                           = "urn:uuid:"
	// scheduledHeader is when a message is enqueued, in Unix ms.
	scheduledHeader = "x-scheduled-enqueue-time"
	encodedType     = "amqp-1.0" // of a body that is stored as its sections

	// maxHead bounds all of a message but its body: a consumer of 0-9-1 gets it in one frame.
	maxHead = 48 << 10
	// longest is the longest time to live in ms, ten years.
	longest = 315_360_000_000
)

var (
	errHead  = errors.New("the properties, annotations and footer of the message take more than 48 KiB")
	errUser  = errors.New("the user-id of the message is longer than 255 octets, which no user's name is")
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
	body = m.Data
	if m.Data == nil {
		body, m.Footer = m.Body, nil // it stays there
	}
	if len(message)-len(body) > maxHead {
		return nil, nil, "", errHead
	}
	var h amqp10.Header
	var p amqp10.Properties
	if err = h.Read(m.Header); err == nil {
		err = p.Read(m.Properties)
	}
	if err == nil && len(p.UserID) > 255 {
		err = errUser
	}
	if err != nil {
		return nil, nil, "", err
	}
	var out amqp.Properties
	if h.Durable || bus {
		out.DeliveryMode = 2
	}
	if h.Priority != 4 {
		out.Priority, out.Has = h.Priority, amqp.HasPriority
	}
	setTimes(&out, &h, &p, bus)
	fromProperties(&out, &p, bus)
	if err = fromMap(&out, m.MessageAnnotations, true, bus); err == nil {
		err = fromMap(&out, m.ApplicationProperties, false, bus)
	}
	if err != nil {
		return nil, nil, "", err
	}
	if filtered {
		addSystem(&out, &p)
	}
	if m.Data == nil {
		out.Type = encodedType
	}
	if head := m.Bare[:len(m.Bare)-len(body)-len(m.Footer)]; string(head) != string(appendHead(b, &out, body, false)[len(b):]) {
		setHeader(&out, headHeader, head)
	}
	if m.Footer != nil {
		setHeader(&out, footerHeader, m.Footer)
	}
	if max(len(out.ContentType), len(out.ContentEncoding), len(out.Type)) > 255 {
		return nil, nil, "", errShort
	}
	to, _ = p.To.(string)
	return out.Append(b), body, to, nil
}

// fromProperties converts the properties as RabbitMQ 4 does: a text that is too long is left out.
func fromProperties(out *amqp.Properties, p *amqp10.Properties, bus bool) {
	setID(out, &out.MessageID, messageIDHeader, p.MessageID, bus)
	setID(out, &out.CorrelationID, correlationIDHeader, p.CorrelationID, bus)
	replyTo, _ := p.ReplyTo.(string)
	if kind, name, _, err := ParseAddress(replyTo); err == nil && kind == "queues" && !bus {
		replyTo = name
	}
	groupID, _ := p.GroupID.(string)
	out.ReplyTo, out.AppID, out.UserID = shortOrNone(replyTo), shortOrNone(groupID), string(p.UserID)
	out.ContentType, out.ContentEncoding = p.ContentType, p.ContentEncoding
	if at, ok := p.CreationTime.(amqp10.Timestamp); ok && at >= 0 {
		out.Timestamp = amqp.Timestamp(at / 1000)
	}
}

// setTimes sets what the message says of its end. A time to live counts from when the message is enqueued, so it goes before
// absolute-expiry-time, which clients compute from it by a clock that may be wrong. Clients of Service Bus have no other use for that than
// a time to live of more than the header holds, which is the time between two instants of the same clock (Service Bus: Message expiration).
func setTimes(out *amqp.Properties, h *amqp10.Header, p *amqp10.Properties, bus bool) {
	ttl := int64(h.TTL.Value)
	created, dated := p.CreationTime.(amqp10.Timestamp)
	expiry, expires := p.AbsoluteExpiry.(amqp10.Timestamp)
	switch {
	case bus && dated && expires && ttl == math.MaxUint32:
		ttl = min(max(ttl, int64(expiry-created)), longest)
	case !bus && !h.TTL.Set && expires:
		setHeader(out, "x-expires-at", int64(expiry))
	}
	if h.TTL.Set {
		out.Expiration = strconv.FormatInt(ttl, 10)
	}
}

func shortOrNone(s string) string {
	if len(s) > 255 {
		return ""
	}
	return s
}

// setID sets an id. One that is no short text is a header. For a client of Service Bus, whose filters compare ids, it is a plain text.
func setID(out *amqp.Properties, to *string, header string, id any, bus bool) {
	*to = idText(id)
	binary, isBinary := id.([]byte)
	if unique, is := id.(amqp10.UUID); is && bus {
		*to = uuidText(unique)
	} else if isBinary && bus {
		*to = string(binary)
	} else if isBinary {
		setHeader(out, header, binary)
	}
	if len(*to) > 255 {
		setHeader(out, header, *to)
		*to = ""
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

// idText is a message-id or a correlation-id as a text; "": it cannot be one.
func idText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case uint64:
		return strconv.FormatUint(v, 10)
	case amqp10.UUID:
		return uuidScheme + uuidText(v)
	}
	return ""
}

func uuidText(v amqp10.UUID) string {
	x := hex.EncodeToString(v[:])
	return strings.Join([]string{x[:8], x[8:12], x[12:16], x[16:20], x[20:]}, "-")
}

// idOf is the id that a text is: one that idText gave for a UUID is that again.
func idOf(text string) any {
	if hexed, is := strings.CutPrefix(text, uuidScheme); is {
		var id amqp10.UUID
		if n, err := hex.Decode(id[:], []byte(strings.ReplaceAll(hexed, "-", ""))); err == nil && n == len(id) && uuidText(id) == hexed {
			return id
		}
	}
	return text
}

// fromMap adds the entries of a section to the headers: of annotations those that begin with x-, of
// application properties all others, since the broker obeys headers that begin with x-, and
// RabbitMQ takes them from annotations only. bus: none that has the broker send something elsewhere, as x-cc does.
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
		if !ok || len(key) > 255 || strings.HasPrefix(key, "x-") != annotations || strings.HasPrefix(key, keptPrefix) {
			continue
		}
		if key == "CC" || key == "BCC" || bus && annotations && !strings.HasPrefix(key, "x-opt-") {
			continue
		}
		if annotations && key == ccAnnotation {
			key = "CC"
		}
		if text, is := e.Value.(string); is && annotations && key == typeAnnotation {
			out.Type = text
		} else if at, is := e.Value.(amqp10.Timestamp); is && annotations && key == "x-opt-scheduled-enqueue-time" {
			setHeader(out, scheduledHeader, int64(at)) // of Service Bus, in ms
		} else if v, ok := fromValue(e.Value, 0); ok {
			if binary, is := v.([]byte); is && !annotations {
				v = string(binary) // as RabbitMQ does
			}
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
		return uuidText(v), true
	case amqp10.Char:
		return string(rune(v)), true
	case amqp10.List:
		return fromList(v, depth), true
	case amqp10.Array:
		return fromList(v, depth), true
	case amqp10.Map:
		t, _ := fromTable(v, depth+1)
		return t, true
	}
	return nil, false
}

// fromTable is a map as a table, without what cannot be in one; whole: there is nothing of that.
func fromTable(m amqp10.Map, depth int) (t amqp.Table, whole bool) {
	t, whole = amqp.Table{}, true
	for _, e := range m {
		key, _ := fromValue(e.Key, depth)
		name, isText := key.(string)
		value, isField := fromValue(e.Value, depth)
		if !isText || !isField || len(name) > 255 {
			whole = false
			continue
		}
		t[name] = value
	}
	return t, whole
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
