package amqp

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// ProtocolHeader is what a client sends first, and what a server answers to a
// header it does not speak (AMQP 0-9-1 §4.2.2).
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
	// FrameOverhead is what a frame takes beside its payload, in octets: seven
	// before it (type, channel, size) and the frame-end after it.
	FrameOverhead = 8
	// MinFrameSize is the largest frame a peer must accept before tuning, and
	// the smallest frame-max that may be agreed on (AMQP 0-9-1 §4.2.3).
	MinFrameSize = 4096

	frameHeaderSize = 7
)

// Frame is one frame as it stands in a read buffer. Payload aliases that
// buffer: it is valid until the buffer is overwritten.
type Frame struct {
	Type    uint8
	Channel uint16
	Payload []byte
}

// ParseFrame returns the first frame of buf and how many octets it took. n is 0
// with a nil error when buf does not yet hold a whole frame.
//
// max is the largest frame allowed, in octets and with its overhead; 0 allows
// none. (RabbitMQ forgives clients that count the overhead on top: a server that
// does so too passes FrameOverhead more.) A declared size beyond max, an unknown
// type, and a heartbeat with a payload are found as soon as the seven octets
// before the payload are there. They and a wrong frame-end are an *Exception 501
// FRAME_ERROR, after which the stream cannot be read on (AMQP 0-9-1 §4.2.3). It
// does not allocate unless it fails.
func ParseFrame(buf []byte, max uint32) (f Frame, n int, err error) {
	if len(buf) < frameHeaderSize {
		return Frame{}, 0, nil
	}
	kind := buf[0]
	size := uint64(binary.BigEndian.Uint32(buf[3:7]))
	if size+FrameOverhead > uint64(max) || !knownFrame(kind, size) {
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

func knownFrame(kind uint8, size uint64) bool {
	return kind >= FrameMethod && kind <= FrameBody || kind == FrameHeartbeat && size == 0
}

// The texts below are worded as RabbitMQ's, because operators search for them.

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

// Unexpected is the exception 505 UNEXPECTED_FRAME for a frame that cannot be
// where it came, such as a heartbeat on a channel other than 0.
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

// beginFrame appends what precedes a payload, its size still 0. endFrame, told
// where the frame began, sets the size and appends the frame-end.
func beginFrame(b []byte, kind uint8, channel uint16) []byte {
	return append(b, kind, byte(channel>>8), byte(channel), 0, 0, 0, 0)
}

func endFrame(b []byte, start int) []byte {
	size := uint32(len(b) - start - frameHeaderSize)
	binary.BigEndian.PutUint32(b[start+3:], size)
	return append(b, FrameEnd)
}

// appendFrameHeader appends what precedes a payload whose size is known.
func appendFrameHeader(b []byte, kind uint8, channel uint16, size int) []byte {
	return append(b, kind, byte(channel>>8), byte(channel),
		byte(size>>24), byte(size>>16), byte(size>>8), byte(size))
}
