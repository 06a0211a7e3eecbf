package amqp

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFrameIsTakenOnlyWhenWhole(t *testing.T) {
	frame := []byte("\x03\x01\x02\x00\x00\x00\x05hello\xce")
	stream := append(bytes.Clone(frame), 8, 0)
	for cut := range frame {
		_, n, err := ParseFrame(stream[:cut], MinFrameSize)
		require.NoError(t, err)
		require.Zero(t, n, "cut at %d", cut)
	}
	f, n, err := ParseFrame(stream, MinFrameSize)
	require.NoError(t, err)
	require.Equal(t, len(frame), n)
	require.Equal(t, Frame{Type: FrameBody, Channel: 0x0102, Payload: []byte("hello")}, f)
	require.Equal(t, len(f.Payload), cap(f.Payload), "an append must not reach the next frame")
}

func TestFrameSizeLimitCountsTheOverhead(t *testing.T) {
	frame := appendFrameHeader(nil, FrameBody, 1, 92)
	frame = append(frame, make([]byte, 92)...)
	frame = append(frame, FrameEnd)
	_, n, err := ParseFrame(frame, 100)
	require.NoError(t, err)
	require.Equal(t, 100, n)
	_, _, err = ParseFrame(frame, 99)
	requireCode(t, FrameError, err)
}

func TestBadFramesAreRefusedAtTheirHeader(t *testing.T) {
	for name, c := range map[string]struct {
		octets, text string
		max          uint32
	}{
		"4 GiB":            {"\x01\x00\x00\xff\xff\xff\xff", "type 1, all octets = <<>>: {frame_too_large,4294967295,8184}", 8192},
		"one too large":    {"\x03\x00\x01\x00\x00\x0f\xf9", "type 3, all octets = <<>>: {frame_too_large,4089,4088}", MinFrameSize},
		"no frame allowed": {"\x08\x00\x00\x00\x00\x00\x00", "type 8, all octets = <<>>: {frame_too_large,0,-8}", 0},
		"type 0":           {"\x00\x00\x00\x00\x00\x00\x00", "type 0, all octets = <<>>: unknown_frame", MinFrameSize},
		"type 4":           {"\x04\x00\x00\x00\x00\x00\x00", "type 4, all octets = <<>>: unknown_frame", MinFrameSize},
		"type 255":         {"\xff\x00\x00\x00\x00\x00\x00", "type 255, all octets = <<>>: unknown_frame", MinFrameSize},
		"full heartbeat":   {"\x08\x00\x00\x00\x00\x00\x01", "type 8, all octets = <<>>: unknown_frame", MinFrameSize},
		"frame-end":        {"\x03\x00\x01\x00\x00\x00\x02\x07\x08\xcd", "type 3, all octets = <<7,8>>: {invalid_frame_end_marker,205}", MinFrameSize},
		"long, frame-end": {"\x03\x00\x01\x00\x00\x00\x11abcdefghijklmnopq\x00",
			"type 3, first 16 octets = <<97,98,99,100,101,102,103,104,105,106,107,108,109,110,111,112>>: {invalid_frame_end_marker,0}", MinFrameSize},
	} {
		t.Run(name, func(t *testing.T) {
			f, n, err := ParseFrame([]byte(c.octets), c.max)
			e := requireCode(t, FrameError, err)
			require.Equal(t, "FRAME_ERROR - "+c.text, e.Text)
			require.True(t, e.Hard())
			require.Zero(t, n)
			require.Zero(t, f)
		})
	}
}

func TestHeartbeat(t *testing.T) {
	frame := AppendHeartbeat(nil)
	require.Equal(t, "\x08\x00\x00\x00\x00\x00\x00\xce", string(frame))
	f, _, err := ParseFrame(frame, FrameOverhead)
	require.NoError(t, err)
	require.Equal(t, uint8(FrameHeartbeat), f.Type)
}

func TestUnexpectedFrameText(t *testing.T) {
	e := Unexpected(Frame{Type: FrameHeartbeat, Channel: 3})
	require.Equal(t, "UNEXPECTED_FRAME - type 8, all octets = <<>>", e.Text)
	require.Equal(t, uint16(UnexpectedFrame), e.Code)
}

func TestExceptionScope(t *testing.T) {
	soft := map[uint16]bool{311: true, 312: true, 313: true, 403: true, 404: true, 405: true, 406: true}
	for code := range codeNames {
		e := NewException(code, 50, 10, "no %s", "x")
		require.Equal(t, !soft[code], e.Hard(), code)
		require.Equal(t, codeNames[code]+" - no x", e.Text)
	}
	require.True(t, NewException(math.MaxUint16, 0, 0, "").Hard())
	e := NewException(NotFound, ClassQueue, 10, "no queue '%s' in vhost '/'", "q")
	require.EqualError(t, e, "amqp: 404 NOT_FOUND - no queue 'q' in vhost '/'")
}
