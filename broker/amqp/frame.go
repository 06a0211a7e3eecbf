package amqp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// ProtocolHeader is the first thing a client sends, and a server's answer to a header that
// it does not support (AMQP 0-9-1 §4.2.2).
const ProtocolHeader = "AMQP\x00\x00\x09\x01"

// Frame types, and the octet that ends every frame (AMQP 0-9-1 §4.2.3).
const (
	FrameMethod    = 1
	FrameHeader    = 2
	FrameBody      = 3
	FrameHeartbeat = 8
	FrameEnd       = 0xCE
)

const (
	// FrameOverhead is what a frame takes in addition to its payload, in octets: seven
	// before it (type, channel, size) and the frame-end after it.
	FrameOverhead = 8
	// MinFrameSize is the largest frame a peer must accept before tuning, and
	// the smallest frame-max that may be agreed on (AMQP 0-9-1 §4.2.3).
	MinFrameSize = 4096

	frameHeaderSize = 7
)

// Frame is one frame in a read buffer. Payload aliases that buffer and is valid until the
// buffer is overwritten.
type Frame struct {
	Type    uint8
	Channel uint16
	Payload []byte
}

// ParseFrame returns the first frame of buf and the number of its octets. n is 0, with a
// nil error, if buf does not contain a whole frame yet.
//
// max is the largest allowed frame, in octets and including overhead; 0 allows none.
// (RabbitMQ tolerates clients that do not count the overhead; a server that does so too
// passes FrameOverhead more.) A size beyond max, an unknown type, and a heartbeat with a
// payload are found as soon as the seven octets before the payload are there. These and a
// wrong frame-end are an *Exception 501 FRAME_ERROR, after which the stream cannot be read
// any further (AMQP 0-9-1 §4.2.3). ParseFrame allocates only when it fails.
func ParseFrame(buf []byte, max uint32) (f Frame, n int, err error) {
	if len(buf) < frameHeaderSize {
		return Frame{}, 0, nil
	}
	kind := buf[0]
	size := uint64(binary.BigEndian.Uint32(buf[3:7]))
	known := kind >= FrameMethod && kind <= FrameBody || kind == FrameHeartbeat && size == 0
	if size+FrameOverhead > uint64(max) || !known {
		return Frame{}, 0, frameHeaderError(kind, size, max)
	}
	if uint64(len(buf)) < size+FrameOverhead {
		return Frame{}, 0, nil
	}
	end := frameHeaderSize + int(size)
	if buf[end] != FrameEnd {
		reason := fmt.Sprintf("{invalid_frame_end_marker,%d}", buf[end])
		return Frame{}, 0, frameError(kind, buf[frameHeaderSize:end], reason)
	}
	return Frame{
		Type:    kind,
		Channel: binary.BigEndian.Uint16(buf[1:3]),
		Payload: buf[frameHeaderSize:end:end],
	}, end + 1, nil
}

// The texts below are RabbitMQ's, because operators search for them.

func frameHeaderError(kind uint8, size uint64, max uint32) *Exception {
	if size+FrameOverhead <= uint64(max) {
		return frameError(kind, nil, "unknown_frame")
	}
	room := int64(max) - FrameOverhead
	return frameError(kind, nil, fmt.Sprintf("{frame_too_large,%d,%d}", size, room))
}

func frameError(kind uint8, payload []byte, reason string) *Exception {
	return NewException(FrameError, 0, 0, "%s: %s", snippet(kind, payload), reason)
}

// Unexpected returns the exception 505 UNEXPECTED_FRAME for a frame that must not come
// here, such as a heartbeat on a channel other than 0.
func Unexpected(f Frame) *Exception {
	return NewException(UnexpectedFrame, 0, 0, "%s", snippet(f.Type, f.Payload))
}

func snippet(kind uint8, payload []byte) string {
	const most = 16
	which := "all"
	if len(payload) > most {
		which, payload = "first 16", payload[:most]
	}
	octets := strings.ReplaceAll(strings.Trim(fmt.Sprint(payload), "[]"), " ", ",")
	return fmt.Sprintf("type %d, %s octets = <<%s>>", kind, which, octets)
}

// AppendHeartbeat appends a heartbeat frame.
func AppendHeartbeat(b []byte) []byte {
	return append(b, FrameHeartbeat, 0, 0, 0, 0, 0, 0, FrameEnd)
}

// endFrame sets the size of the frame that began at an offset, and appends the frame-end.
func endFrame(b []byte, start int) []byte {
	size := uint32(len(b) - start - frameHeaderSize)
	binary.BigEndian.PutUint32(b[start+3:], size)
	return append(b, FrameEnd)
}

// appendFrameHeader appends what precedes a payload. The size may be set by endFrame.
func appendFrameHeader(b []byte, kind uint8, channel uint16, size int) []byte {
	return append(b, kind, byte(channel>>8), byte(channel),
		byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
}
