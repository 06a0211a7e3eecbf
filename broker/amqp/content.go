package amqp

import "encoding/binary"

// ContentHeader is the payload of a header frame. Properties is the raw
// property list, flags and values, and aliases the payload.
type ContentHeader struct {
	Class      uint16
	BodySize   uint64
	Properties []byte
}

// contentHeaderSize is class, weight and body size; the properties follow.
const contentHeaderSize = 2 + 2 + 8

// ParseContentHeader takes the payload of a header frame apart without
// allocating. What is too short to be one is an *Exception 501 FRAME_ERROR, a
// weight other than 0 one of 505 UNEXPECTED_FRAME as in RabbitMQ. The property
// list is not looked at: see ViewProperties.
func ParseContentHeader(payload []byte) (ContentHeader, error) {
	if len(payload) < contentHeaderSize+2 {
		return ContentHeader{}, NewException(FrameError, 0, 0, "content header of %d octets", len(payload))
	}
	class := binary.BigEndian.Uint16(payload)
	if payload[2]|payload[3] != 0 {
		return ContentHeader{}, NewException(UnexpectedFrame, 0, 0,
			"expected content header for class %d, got one of weight %d instead",
			class, binary.BigEndian.Uint16(payload[2:]))
	}
	return ContentHeader{
		Class:      class,
		BodySize:   binary.BigEndian.Uint64(payload[4:]),
		Properties: payload[contentHeaderSize:],
	}, nil
}

// AppendContent appends a header frame for class basic and the body in frames
// of at most frameMax octets each, overhead included; an empty body has none.
// props is a raw property list as it was received. frameMax 0 means no limit;
// else it is at least MinFrameSize. A header frame cannot be split, so a list
// longer than frameMax goes out as it is.
func AppendContent(b []byte, channel uint16, props, body []byte, frameMax uint32) []byte {
	b = appendFrameHeader(b, FrameHeader, channel, contentHeaderSize+len(props))
	b = append(b, 0, ClassBasic, 0, 0)
	b = appendLonglong(b, uint64(len(body)))
	b = append(b, props...)
	b = append(b, FrameEnd)
	room := len(body)
	if frameMax > FrameOverhead {
		room = int(frameMax) - FrameOverhead
	}
	for len(body) > 0 {
		n := min(len(body), room)
		b = appendFrameHeader(b, FrameBody, channel, n)
		b = append(b, body[:n]...)
		b = append(b, FrameEnd)
		body = body[n:]
	}
	return b
}
