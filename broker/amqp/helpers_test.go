package amqp

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// everyType has each field table type, with extreme values where there are any.
func everyType() Table {
	return Table{
		"bool":      true,
		"int8":      int8(math.MinInt8),
		"uint8":     uint8(math.MaxUint8),
		"int16":     int16(math.MinInt16),
		"uint16":    uint16(math.MaxUint16),
		"int32":     int32(math.MinInt32),
		"uint32":    uint32(math.MaxUint32),
		"int64":     int64(math.MinInt64),
		"float32":   float32(-1.5),
		"float64":   math.Inf(1),
		"decimal":   Decimal{Scale: 2, Value: -12345},
		"string":    "caf\xc3\xa9 \x00\xff",
		"empty":     "",
		"bytes":     []byte{0, 1, 0xCE},
		"no bytes":  []byte{},
		"timestamp": Timestamp(1_700_000_000),
		"table":     Table{"inner": Table{}, "": false},
		"array":     []any{int8(1), "two", nil, []any{}, Table{"k": int64(3)}},
		"void":      nil,
	}
}

// requireCode requires err to be an exception with this code.
func requireCode(t *testing.T, code uint16, err error, about ...any) *Exception {
	t.Helper()
	var e *Exception
	require.True(t, errors.As(err, &e), "%v: %v", about, err)
	require.Equal(t, code, e.Code, about...)
	require.True(t, strings.HasPrefix(e.Text, codeNames[code]+" - "), e.Text)
	return e
}

// payloadOf returns the payload of the single frame in frame.
func payloadOf(t *testing.T, frame []byte) []byte {
	t.Helper()
	f, n, err := ParseFrame(frame, math.MaxUint32)
	require.NoError(t, err)
	require.Equal(t, len(frame), n)
	return f.Payload
}

// lengthed puts the length of b, four octets, before b.
func lengthed(b string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...)
}
