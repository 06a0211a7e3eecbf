package amqp

import "encoding/binary"

// PropertySet is the set of class basic's properties in a list: the flags before their
// values (AMQP 0-9-1 §4.2.6.1).
type PropertySet uint16

const (
	HasContentType PropertySet = 1 << (15 - iota)
	HasContentEncoding
	HasHeaders
	HasDeliveryMode
	HasPriority
	HasCorrelationID
	HasReplyTo
	HasExpiration
	HasMessageID
	HasTimestamp
	HasType
	HasUserID
	HasAppID
	HasClusterID

	// Besides the fourteen properties there is a flag without a property, and a flag that
	// announces more flags, which class basic does not have.
	undefinedProperties PropertySet = 3
)

// Properties are the properties of a message. A property is written if it is in Has or its
// value is not zero. So Has is needed only for properties that are present and zero.
type Properties struct {
	Has             PropertySet
	ContentType     string
	ContentEncoding string
	Headers         Table
	DeliveryMode    uint8 // 2 is persistent
	Priority        uint8
	CorrelationID   string
	ReplyTo         string
	Expiration      string // decimal milliseconds
	MessageID       string
	Timestamp       Timestamp
	Type            string
	UserID          string
	AppID           string
	ClusterID       string
}

// NamedProperty is a property with its name in JSON and in filters. Of is where it is: a *string, *uint8 or *Timestamp.
type NamedProperty struct {
	Name string
	Flag PropertySet
	Of   func(*Properties) any
}

// NamedProperties are all properties but the headers.
var NamedProperties = []NamedProperty{
	{"message_id", HasMessageID, func(p *Properties) any { return &p.MessageID }},
	{"correlation_id", HasCorrelationID, func(p *Properties) any { return &p.CorrelationID }},
	{"type", HasType, func(p *Properties) any { return &p.Type }},
	{"app_id", HasAppID, func(p *Properties) any { return &p.AppID }},
	{"user_id", HasUserID, func(p *Properties) any { return &p.UserID }},
	{"reply_to", HasReplyTo, func(p *Properties) any { return &p.ReplyTo }},
	{"content_type", HasContentType, func(p *Properties) any { return &p.ContentType }},
	{"content_encoding", HasContentEncoding, func(p *Properties) any { return &p.ContentEncoding }},
	{"expiration", HasExpiration, func(p *Properties) any { return &p.Expiration }},
	{"cluster_id", HasClusterID, func(p *Properties) any { return &p.ClusterID }},
	{"priority", HasPriority, func(p *Properties) any { return &p.Priority }},
	{"delivery_mode", HasDeliveryMode, func(p *Properties) any { return &p.DeliveryMode }},
	{"timestamp", HasTimestamp, func(p *Properties) any { return &p.Timestamp }}, // Unix seconds
}

// ParseProperties parses a raw property list, which must fill raw. Nothing in
// the result aliases raw. The error is an *Exception 502 SYNTAX_ERROR.
func ParseProperties(raw []byte, lim Limits) (Properties, error) {
	return ParseWanted(raw, lim, nil)
}

// ParseWanted is ParseProperties with only those headers whose names are wanted; wants is nil: with all.
func ParseWanted(raw []byte, lim Limits, wants func(name []byte) bool) (Properties, error) {
	v, err := ViewProperties(raw)
	if err != nil {
		return Properties{}, err
	}
	p := Properties{
		Has:             v.Has,
		ContentType:     string(v.ContentType),
		ContentEncoding: string(v.ContentEncoding),
		DeliveryMode:    v.DeliveryMode,
		Priority:        v.Priority,
		CorrelationID:   string(v.CorrelationID),
		ReplyTo:         string(v.ReplyTo),
		Expiration:      string(v.Expiration),
		MessageID:       string(v.MessageID),
		Timestamp:       v.Timestamp,
		Type:            string(v.Type),
		UserID:          string(v.UserID),
		AppID:           string(v.AppID),
		ClusterID:       string(v.ClusterID),
	}
	if v.Headers != nil {
		n, err := tableSize(v.Headers, lim)
		if err != nil {
			return Properties{}, err
		}
		p.Headers = decodeEntries(v.Headers[4:n], wants)
	}
	return p, nil
}

// Append appends p as a raw property list. It panics like AppendTable, and on a short
// string of more than 255 octets.
func (p *Properties) Append(b []byte) []byte {
	start := len(b)
	w := propertyWriter{b: append(b, 0, 0), forced: p.Has}
	w.text(HasContentType, p.ContentType)
	w.text(HasContentEncoding, p.ContentEncoding)
	if w.has(HasHeaders, p.Headers != nil) {
		w.b = AppendTable(w.b, p.Headers)
	}
	w.octet(HasDeliveryMode, p.DeliveryMode)
	w.octet(HasPriority, p.Priority)
	w.text(HasCorrelationID, p.CorrelationID)
	w.text(HasReplyTo, p.ReplyTo)
	w.text(HasExpiration, p.Expiration)
	w.text(HasMessageID, p.MessageID)
	if w.has(HasTimestamp, p.Timestamp != 0) {
		w.b = binary.BigEndian.AppendUint64(w.b, uint64(p.Timestamp))
	}
	w.text(HasType, p.Type)
	w.text(HasUserID, p.UserID)
	w.text(HasAppID, p.AppID)
	w.text(HasClusterID, p.ClusterID)
	w.b[start], w.b[start+1] = byte(w.written>>8), byte(w.written)
	return w.b
}

// propertyWriter appends values in the order of their flags and collects the flags.
type propertyWriter struct {
	b               []byte
	forced, written PropertySet
}

func (w *propertyWriter) has(flag PropertySet, set bool) bool {
	if !set && w.forced&flag == 0 {
		return false
	}
	w.written |= flag
	return true
}

func (w *propertyWriter) text(flag PropertySet, s string) {
	if w.has(flag, s != "") {
		w.b = appendShortstr(w.b, s)
	}
}

func (w *propertyWriter) octet(flag PropertySet, v uint8) {
	if w.has(flag, v != 0) {
		w.b = append(w.b, v)
	}
}
