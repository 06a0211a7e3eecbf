package exchange

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/amqp"
)

// Values of one class equal one another and nothing in any other class.
var classes = [][]any{
	{int8(1), uint8(1), int16(1), uint16(1), int32(1), uint32(1), int64(1)},
	{int8(-1), int64(-1)},
	{float32(1), float64(1)},
	{float32(0.5), 0.5},
	{float32(0), math.Copysign(0, -1)},
	{math.NaN(), float32(math.NaN())},
	{"1", []byte("1")},
	{"", []byte{}, []byte(nil)},
	{true},
	{false},
	{nil},
	{amqp.Timestamp(1)},
	{amqp.Decimal{Scale: 0, Value: 1}},
	{amqp.Decimal{Scale: 1, Value: 10}},
	{amqp.Table{}, amqp.Table(nil)},
	{amqp.Table{"a": int8(1)}, amqp.Table{"a": int64(1)}},
	{amqp.Table{"a": "1"}},
	{amqp.Table{"b": int8(1)}},
	{[]any{}, []any(nil)},
	{[]any{int8(1), "x"}, []any{int32(1), []byte("x")}},
	{[]any{"x", int8(1)}},
}

func TestArgsEqualByTypeClass(t *testing.T) {
	for i, class := range classes {
		for j, other := range classes {
			for _, a := range class {
				for _, b := range other {
					assert.Equal(t, i == j, ArgsEqual(amqp.Table{"k": a}, amqp.Table{"k": b}), "%T %v, %T %v", a, a, b, b)
					assert.Equal(t, i == j, hashArgs(amqp.Table{"k": a}) == hashArgs(amqp.Table{"k": b}), "%T %v, %T %v", a, a, b, b)
				}
			}
		}
	}
}

func TestArgsEqualTables(t *testing.T) {
	assert.True(t, ArgsEqual(nil, amqp.Table{}))
	assert.False(t, ArgsEqual(nil, amqp.Table{"a": nil}))
	assert.False(t, ArgsEqual(amqp.Table{"a": nil}, amqp.Table{"b": nil}), "absent is not void")
	assert.Panics(t, func() { ArgsEqual(amqp.Table{"a": struct{}{}}, amqp.Table{"a": nil}) })
}
