package exchange

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"time"

	"curfew/broker/amqp"
)

// ArgsEqual tells whether two tables hold the same fields with equal values. A nil table equals an
// empty one.
//
// Values are compared by type class, as RabbitMQ does: the width of an integer or a float does not
// matter, nor whether text came as a string or as bytes; an integer never equals a float, nor a
// timestamp, nor a decimal. Tables and arrays are compared field by field under the same rule. The Go
// types are those of amqp.Table; any other is a bug of the caller and panics.
func ArgsEqual(a, b amqp.Table) bool {
	return maps.EqualFunc(a, b, valuesEqual)
}

func valuesEqual(a, b any) bool {
	if t, ok := a.(time.Time); ok {
		a = amqp.Timestamp(t.Unix())
	}
	if t, ok := b.(time.Time); ok {
		b = amqp.Timestamp(t.Unix())
	}
	if x, ok := integer(a); ok {
		y, ok := integer(b)
		return ok && x == y
	}
	if x, ok := float(a); ok {
		y, ok := float(b)
		return ok && (x == y || x != x && y != y) // NaN equals NaN, else it could not be unbound
	}
	switch x := a.(type) {
	case string:
		return textEqual([]byte(x), b)
	case []byte:
		return textEqual(x, b)
	case amqp.Table:
		y, ok := b.(amqp.Table)
		return ok && ArgsEqual(x, y)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, valuesEqual)
	case nil, bool, amqp.Timestamp, amqp.Decimal:
		return a == b
	}
	panic(fmt.Sprintf("exchange: %T is not an AMQP field value", a))
}

func textEqual(x []byte, b any) bool {
	switch y := b.(type) {
	case string:
		return string(x) == y
	case []byte:
		return bytes.Equal(x, y)
	}
	return false
}

func integer(v any) (int64, bool) {
	switch n := v.(type) {
	case int8:
		return int64(n), true
	case uint8:
		return int64(n), true
	case int16:
		return int64(n), true
	case uint16:
		return int64(n), true
	case int32:
		return int64(n), true
	case uint32:
		return int64(n), true
	case int64:
		return n, true
	case int:
		return int64(n), true
	case uint64:
		return int64(n), true
	}
	return 0, false
}

func float(v any) (float64, bool) {
	switch n := v.(type) {
	case float32:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// typeName is RabbitMQ's name for the AMQP type of v.
func typeName(v any) string {
	switch v.(type) {
	case bool:
		return "bool"
	case int8:
		return "byte"
	case uint8:
		return "unsignedbyte"
	case int16:
		return "short"
	case uint16:
		return "unsignedshort"
	case int32:
		return "signedint"
	case uint32:
		return "unsignedint"
	case int64, int, uint64:
		return "long"
	case float32:
		return "float"
	case float64:
		return "double"
	case amqp.Decimal:
		return "decimal"
	case []byte:
		return "binary"
	case amqp.Timestamp, time.Time:
		return "timestamp"
	case amqp.Table:
		return "table"
	case []any:
		return "array"
	case nil:
		return "void"
	}
	panic(fmt.Sprintf("exchange: %T is not an AMQP field value", v))
}
