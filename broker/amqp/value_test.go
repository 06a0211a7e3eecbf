package amqp

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestValuesByType(t *testing.T) {
	for name, v := range map[string]any{
		"bool": true, "float": float32(1), "double": 1.0, "decimal": Decimal{}, "longstr": "1", "binary": []byte("1"),
		"timestamp": Timestamp(1), "table": Table{}, "array": []any{}, "void": nil,
	} {
		assert.Equal(t, name, TypeName(v))
		_, ok := Integer(v)
		assert.False(t, ok, name)
	}
	for name, v := range map[string]any{
		"byte": int8(-7), "unsignedbyte": uint8(7), "short": int16(-7), "unsignedshort": uint16(7),
		"signedint": int32(-7), "unsignedint": uint32(7), "long": int64(-7),
	} {
		assert.Equal(t, name, TypeName(v))
		n, ok := Integer(v)
		assert.True(t, ok)
		assert.EqualValues(t, v, n)
	}
	assert.Panics(t, func() { TypeName(struct{}{}) })
}
