package amqp

import (
	"encoding/binary"
	"fmt"
	"math"
)

// ContentHeader is the payload of a header frame. Properties is the raw
// property list, flags and values, and aliases the payload.
type ContentHeader struct {
	Class      uint16
	BodySize   uint64
	Properties []byte
}

// contentHeaderSize is class, weight and body size; the properties follow.
const contentHeaderSize = 2 + 2 + 8

// ParseContentHeader parses the payload of a header frame without allocating. A payload
// that is too short is an *Exception 501 FRAME_ERROR. A class other than basic, the only
// one with content, or a weight other than 0 is 505 UNEXPECTED_FRAME. ViewProperties parses
// the property list.
func ParseContentHeader(payload []byte) (ContentHeader, error) {
	if len(payload) < contentHeaderSize+2 {
		return ContentHeader{}, frameError(FrameHeader, payload, "unknown_frame")
	}
	class, weight := binary.BigEndian.Uint16(payload), binary.BigEndian.Uint16(payload[2:])
	if class != ClassBasic || weight != 0 {
		return ContentHeader{}, unexpectedHeader(class, weight)
	}
	return ContentHeader{
		Class:      class,
		BodySize:   binary.BigEndian.Uint64(payload[4:]),
		Properties: payload[contentHeaderSize:],
	}, nil
}

func unexpectedHeader(class, weight uint16) *Exception {
	got := "non content header frame"
	if weight == 0 {
		got = fmt.Sprintf("one for class %d", class)
	}
	return NewException(UnexpectedFrame, ClassBasic, BasicPublishID.Method(),
		"expected content header for class %d, got %s instead", ClassBasic, got)
}

// AppendContent appends a header frame for class basic, and the body in frames (AppendBody); an
// empty body has no frames. props is a raw property list, as it was received. A header frame
// cannot be split, so a list longer than frameMax is sent as it is.
func AppendContent(b []byte, channel uint16, props, body []byte, frameMax uint32) []byte {
	return AppendBody(AppendHeader(b, channel, props, len(body)), channel, body, frameMax)
}

// AppendHeader appends a header frame for class basic, of a body of size octets.
func AppendHeader(b []byte, channel uint16, props []byte, size int) []byte {
	b = appendFrameHeader(b, FrameHeader, channel, contentHeaderSize+len(props))
	b = append(b, 0, ClassBasic, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(size))
	b = append(b, props...)
	return append(b, FrameEnd)
}

// AppendBody appends a body, or a part of it, in frames of at most frameMax octets each,
// including overhead. frameMax 0 means no limit; otherwise it is at least MinFrameSize.
func AppendBody(b []byte, channel uint16, body []byte, frameMax uint32) []byte {
	room := BodyRoom(frameMax)
	for len(body) > 0 {
		n := min(len(body), room)
		b = appendFrameHeader(b, FrameBody, channel, n)
		b = append(b, body[:n]...)
		b = append(b, FrameEnd)
		body = body[n:]
	}
	return b
}

// BodyRoom is how many octets of a body a frame takes.
func BodyRoom(frameMax uint32) int {
	if frameMax <= FrameOverhead {
		return math.MaxInt32
	}
	return int(min(frameMax, math.MaxInt32)) - FrameOverhead
}
