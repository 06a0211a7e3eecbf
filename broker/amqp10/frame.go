package amqp10

import (
	"encoding/binary"
	"errors"
)

// The first octets of a connection (AMQP 1.0 §2.2, §5.3.2).
const (
	ProtocolHeader = "AMQP\x00\x01\x00\x00"
	SASLHeader     = "AMQP\x03\x01\x00\x00"
)

// MinFrameSize is the size of frames that every peer takes, in octets.
const MinFrameSize = 512

// The types of frames.
const (
	FrameAMQP byte = 0
	FrameSASL byte = 1
)

// Frame is one frame. An empty body is a heartbeat.
type Frame struct {
	Type    byte
	Channel uint16
	Body    []byte // aliases what was parsed
}

// ErrFrame is the error of a frame that is malformed or too large: the stream cannot be parsed any further.
var ErrFrame = errors.New("amqp10: malformed frame, or one larger than max-frame-size")

const frameHeader = 8

// ParseFrame parses the frame at the beginning of b. n is its size; 0: it is not complete yet.
func ParseFrame(b []byte, most uint32) (f Frame, n int, err error) {
	if len(b) < frameHeader {
		return f, 0, nil
	}
	size, offset := binary.BigEndian.Uint32(b), uint32(b[4])*4
	if size < frameHeader || size > most || offset < frameHeader || offset > size || b[5] > FrameSASL {
		return f, 0, ErrFrame
	}
	if uint64(len(b)) < uint64(size) {
		return f, 0, nil
	}
	return Frame{Type: b[5], Channel: binary.BigEndian.Uint16(b[6:]), Body: b[offset:size:size]}, int(size), nil
}

// BeginFrame appends the header of a frame, and EndFrame writes its size. start is where the frame begins.
func BeginFrame(b []byte, kind byte, channel uint16) (_ []byte, start int) {
	start = len(b)
	b = append(b, 0, 0, 0, 0, 2, kind)
	return binary.BigEndian.AppendUint16(b, channel), start
}

// EndFrame completes the frame that begins at start and ends where b ends.
func EndFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start))
	return b
}

// AppendFrame appends a frame with a performative and, behind it, a payload.
func AppendFrame(b []byte, channel uint16, p Performative, payload []byte) []byte {
	b, start := BeginFrame(b, frameTypeOf(p), channel)
	return EndFrame(append(AppendPerformative(b, p), payload...), start)
}

// Heartbeat is an empty frame.
var Heartbeat = []byte{0, 0, 0, 8, 2, 0, 0, 0}

func frameTypeOf(p Performative) byte {
	if code := codeOf(p); code >= codeSASLMechanisms && code <= codeSASLOutcome {
		return FrameSASL
	}
	return FrameAMQP
}
