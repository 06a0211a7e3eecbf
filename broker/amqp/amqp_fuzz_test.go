package amqp

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// The decoders parse what strangers send. Seeds are in testdata/fuzz.

func FuzzParseFrame(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte, max uint32) {
		frame, n, err := ParseFrame(b, max)
		if err != nil {
			requireCode(t, FrameError, err)
			require.Zero(t, n)
			return
		}
		if n == 0 {
			return
		}
		require.LessOrEqual(t, uint64(n), uint64(max))
		again := appendFrameHeader(nil, frame.Type, frame.Channel, len(frame.Payload))
		again = append(append(again, frame.Payload...), FrameEnd)
		require.Equal(t, b[:n], again)
	})
}

func FuzzParseMethod(f *testing.F) {
	for _, m := range samples {
		f.Add(AppendMethod(nil, 1, m)[frameHeaderSize:])
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := ParseMethod(payload, Limits{})
		requireHotPathAgrees(t, payload, m)
		if err != nil {
			require.Nil(t, m)
			require.IsType(t, &Exception{}, err)
			return
		}
		frame := AppendMethod(nil, 7, m)
		again, err := ParseMethod(payloadOf(t, frame), Limits{})
		require.NoError(t, err)
		require.Equal(t, frame, AppendMethod(nil, 7, again))
	})
}

// requireHotPathAgrees passes payload, which parsed as m or not at all, to the functions of
// the hot path.
func requireHotPathAgrees(t *testing.T, payload []byte, m Method) {
	t.Helper()
	p, err := ParsePublish(payload)
	if want, ok := m.(*BasicPublish); ok {
		require.NoError(t, err)
		require.Equal(t, *want, BasicPublish{Exchange: string(p.Exchange), RoutingKey: string(p.RoutingKey), Mandatory: p.Mandatory, Immediate: p.Immediate})
	}
	tag, multiple, requeue, err := ParseNack(payload)
	switch want := m.(type) {
	case *BasicNack:
		require.NoError(t, err)
		require.Equal(t, *want, BasicNack{tag, multiple, requeue})
	case *BasicAck:
		require.NoError(t, err)
		require.Equal(t, *want, BasicAck{tag, multiple})
	}
}

func FuzzTable(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		table, rest, err := ParseTable(b, Limits{})
		if err != nil {
			requireCode(t, SyntaxError, err)
			require.Error(t, ValidateTable(b, Limits{}))
			return
		}
		require.NoError(t, ValidateTable(b[:len(b)-len(rest)], Limits{}))
		raw := AppendTable(nil, table)
		require.LessOrEqual(t, len(raw), len(b)-len(rest))
		again, _, err := ParseTable(raw, Limits{})
		require.NoError(t, err)
		require.Equal(t, raw, AppendTable(nil, again))
	})
}

func FuzzProperties(f *testing.F) {
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, viewErr := ViewProperties(raw)
		p, err := ParseProperties(raw, Limits{})
		if viewErr != nil {
			require.Equal(t, viewErr, err)
			return
		}
		if v.Headers != nil {
			require.Equal(t, ValidateTable(v.Headers, Limits{}), err)
		}
		if err != nil {
			requireCode(t, SyntaxError, err)
			return
		}
		written := p.Append(nil)
		require.True(t, bytes.HasPrefix(raw, written[:2]), "the same flags")
		again, err := ParseProperties(written, Limits{})
		require.NoError(t, err)
		require.Equal(t, written, again.Append(nil))
	})
}
