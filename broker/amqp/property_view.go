package amqp

import (
	"encoding/binary"
	"math/bits"
)

// PropertyView is a view of a raw property list: its slices alias the list. A slice is nil
// if the property is absent. If the property is present and empty the slice is empty but
// not nil.
type PropertyView struct {
	Has PropertySet

	DeliveryMode, Priority uint8
	Timestamp              Timestamp

	Headers []byte // the raw table with its length; its entries are not checked

	ContentType, ContentEncoding []byte
	CorrelationID, ReplyTo       []byte
	Expiration, MessageID        []byte
	Type, UserID                 []byte
	AppID, ClusterID             []byte
}

// ViewProperties parses a raw property list without allocating; the list must fill raw. The
// error is an *Exception 502 SYNTAX_ERROR. ValidateTable checks the content of the headers.
func ViewProperties(raw []byte) (v PropertyView, err error) {
	if err := v.Parse(raw); err != nil {
		return PropertyView{}, err
	}
	return v, nil
}

// Parse is ViewProperties into the caller's v, since a view is large to copy. v has to be
// zero, and is not to be used after an error.
func (v *PropertyView) Parse(raw []byte) error {
	c := cursor{rest: raw}
	v.Has = PropertySet(c.short())
	if v.Has&undefinedProperties == 0 {
		v.view(&c)
		if !c.failed && len(c.rest) == 0 {
			return nil
		}
	}
	return NewException(SyntaxError, ClassBasic, BasicPublishID.Method(), "malformed content properties")
}

// view takes the properties that are present, in the order of their flags.
func (v *PropertyView) view(c *cursor) {
	for left := v.Has; left != 0; {
		flag := HasContentType >> bits.LeadingZeros16(uint16(left))
		left &^= flag
		switch flag {
		case HasContentType:
			v.ContentType = c.shortstr()
		case HasContentEncoding:
			v.ContentEncoding = c.shortstr()
		case HasHeaders:
			v.Headers = c.rawTable()
		case HasDeliveryMode:
			v.DeliveryMode = c.octet()
		case HasPriority:
			v.Priority = c.octet()
		case HasCorrelationID:
			v.CorrelationID = c.shortstr()
		case HasReplyTo:
			v.ReplyTo = c.shortstr()
		case HasExpiration:
			v.Expiration = c.shortstr()
		case HasMessageID:
			v.MessageID = c.shortstr()
		case HasTimestamp:
			v.Timestamp = Timestamp(c.longlong())
		case HasType:
			v.Type = c.shortstr()
		case HasUserID:
			v.UserID = c.shortstr()
		case HasAppID:
			v.AppID = c.shortstr()
		case HasClusterID:
			v.ClusterID = c.shortstr()
		}
	}
}

// WithReplyTo appends raw, the property list that v is a view of, with its reply-to
// property replaced.
func (v *PropertyView) WithReplyTo(b, raw []byte, replyTo string) []byte {
	at := v.beforeReplyTo()
	b = appendShortstr(append(b, raw[:at]...), replyTo)
	return append(b, raw[at+1+len(v.ReplyTo):]...)
}

// beforeReplyTo returns the number of octets in the list before the reply-to property.
func (v *PropertyView) beforeReplyTo() int {
	n := v.beforeHeaders() + len(v.Headers)
	for _, name := range [...]struct {
		has  PropertySet
		size int
	}{
		{HasDeliveryMode, 1}, {HasPriority, 1}, {HasCorrelationID, 1 + len(v.CorrelationID)},
	} {
		if v.Has&name.has != 0 {
			n += name.size
		}
	}
	return n
}

// With appends raw, the property list that v is a view of, with another raw table of
// headers and another expiration of at most 255 octets; nil means without.
func (v *PropertyView) With(b, raw, headers, expiration []byte) []byte {
	has := v.Has &^ (HasHeaders | HasExpiration)
	if headers != nil {
		has |= HasHeaders
	}
	if expiration != nil {
		has |= HasExpiration
	}
	b = binary.BigEndian.AppendUint16(b, uint16(has))
	before := v.beforeHeaders()
	b = append(append(b, raw[2:before]...), headers...)
	after := v.beforeReplyTo()
	if v.Has&HasReplyTo != 0 {
		after += 1 + len(v.ReplyTo)
	}
	b = append(b, raw[before+len(v.Headers):after]...)
	if expiration != nil {
		b = append(append(b, byte(len(expiration))), expiration...)
	}
	if v.Has&HasExpiration != 0 {
		after += 1 + len(v.Expiration)
	}
	return append(b, raw[after:]...)
}

// beforeHeaders returns the number of octets in the list before the headers.
func (v *PropertyView) beforeHeaders() int {
	n := 2
	if v.Has&HasContentType != 0 {
		n += 1 + len(v.ContentType)
	}
	if v.Has&HasContentEncoding != 0 {
		n += 1 + len(v.ContentEncoding)
	}
	return n
}
