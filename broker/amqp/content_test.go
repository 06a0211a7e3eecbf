package amqp

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContentHeader(t *testing.T) {
	payload := octets(t, "003c 0000 8000000000000000 1000 02")
	h, err := ParseContentHeader(payload)
	require.NoError(t, err)
	require.Equal(t, ContentHeader{Class: ClassBasic, BodySize: 1 << 63, Properties: payload[12:]}, h)
	for cut := range 14 {
		_, err := ParseContentHeader(payload[:cut])
		requireCode(t, FrameError, err, cut)
	}
	for spaced, text := range map[string]string{
		"0032 0000 0000000000000000 0000": "expected content header for class 60, got one for class 50 instead",
		"003c 0001 0000000000000000 0000": "expected content header for class 60, got non content header frame instead",
	} {
		_, err := ParseContentHeader(octets(t, spaced))
		require.Equal(t, "UNEXPECTED_FRAME - "+text, requireCode(t, UnexpectedFrame, err).Text)
	}
}

func TestContentIsSplitAtFrameMax(t *testing.T) {
	props := (&Properties{DeliveryMode: 2}).Append(nil)
	body := bytes.Repeat([]byte("0123456789"), 1000)
	for _, size := range []int{0, 1, 4087, 4088, 4089, 8176, 10_000} {
		for _, frameMax := range []uint32{0, MinFrameSize, 5000, math.MaxUint32} {
			b := AppendContent(nil, 9, props, body[:size], frameMax)
			frames := split(t, b, frameMax)
			h, err := ParseContentHeader(frames[0].Payload)
			require.NoError(t, err)
			require.Equal(t, ContentHeader{Class: ClassBasic, BodySize: uint64(size), Properties: props}, h)
			var got []byte
			for _, f := range frames[1:] {
				require.Equal(t, uint8(FrameBody), f.Type)
				require.Equal(t, uint16(9), f.Channel)
				require.NotEmpty(t, f.Payload)
				got = append(got, f.Payload...)
			}
			require.True(t, bytes.Equal(body[:size], got))
		}
	}
}

// split splits b into frames, each at most frameMax.
func split(t *testing.T, b []byte, frameMax uint32) (frames []Frame) {
	t.Helper()
	if frameMax == 0 {
		frameMax = math.MaxUint32
	}
	for len(b) > 0 {
		f, n, err := ParseFrame(b, frameMax)
		require.NoError(t, err)
		require.NotZero(t, n)
		frames = append(frames, f)
		b = b[n:]
	}
	return frames
}

// The functions of the hot path and the structs write the same octets.
func TestHotPathAgreesWithTheStructs(t *testing.T) {
	const tag = 1<<40 + 3
	exchange, key := []byte("amq.topic"), []byte("a.b")
	for _, c := range []struct {
		hot  []byte
		cold Method
	}{
		{AppendAck(nil, 1, tag, true), &BasicAck{tag, true}},
		{AppendNack(nil, 1, tag, true, false), &BasicNack{tag, true, false}},
		{AppendNack(nil, 1, tag, false, true), &BasicNack{tag, false, true}},
		{AppendDeliver(nil, 1, "ctag", tag, true, exchange, key), &BasicDeliver{"ctag", tag, true, "amq.topic", "a.b"}},
		{AppendGetOk(nil, 1, tag, true, exchange, key, 7), &BasicGetOk{tag, true, "amq.topic", "a.b", 7}},
		{AppendReturn(nil, 1, NoRoute, "NO_ROUTE", nil, key), &BasicReturn{NoRoute, "NO_ROUTE", "", "a.b"}},
	} {
		require.Equal(t, AppendMethod(nil, 1, c.cold), c.hot, IDOf(c.cold))
	}
}

func TestParsePublish(t *testing.T) {
	for _, m := range []*BasicPublish{
		{}, {Exchange: "e", RoutingKey: "k", Mandatory: true}, {RoutingKey: "q", Immediate: true},
	} {
		payload := payloadOf(t, AppendMethod(nil, 1, m))
		p, err := ParsePublish(payload)
		require.NoError(t, err)
		require.Equal(t, *m, BasicPublish{Exchange: string(p.Exchange), RoutingKey: string(p.RoutingKey), Mandatory: p.Mandatory, Immediate: p.Immediate})
		for cut := range payload {
			_, err := ParsePublish(payload[:cut])
			requireCode(t, SyntaxError, err, cut)
		}
		_, err = ParsePublish(append(payload[:len(payload):len(payload)], 0))
		e := requireCode(t, SyntaxError, err)
		require.Equal(t, "SYNTAX_ERROR - cannot decode basic.publish", e.Text)
	}
}

func TestParseSettlements(t *testing.T) {
	ack := payloadOf(t, AppendMethod(nil, 1, &BasicAck{7, true}))
	nack := payloadOf(t, AppendMethod(nil, 1, &BasicNack{8, true, false}))
	reject := payloadOf(t, AppendMethod(nil, 1, &BasicReject{9, true}))

	tag, multiple, err := ParseAck(ack)
	require.NoError(t, err)
	require.Equal(t, []any{uint64(7), true}, []any{tag, multiple})
	tag, multiple, requeue, err := ParseNack(nack)
	require.NoError(t, err)
	require.Equal(t, []any{uint64(8), true, false}, []any{tag, multiple, requeue})
	tag, requeue, err = ParseReject(reject)
	require.NoError(t, err)
	require.Equal(t, []any{uint64(9), true}, []any{tag, requeue})

	for cut := range ack {
		_, _, err := ParseAck(ack[:cut])
		requireCode(t, SyntaxError, err)
		_, _, _, err = ParseNack(nack[:cut])
		requireCode(t, SyntaxError, err)
		_, _, err = ParseReject(append(reject, reject[:cut+1]...))
		requireCode(t, SyntaxError, err)
	}
}
