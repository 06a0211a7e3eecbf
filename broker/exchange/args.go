package exchange

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"

	"curfew/broker/amqp"
)

// ArgsEqual reports whether two tables hold the same fields with equal values. A nil table
// equals an empty one.
//
// Values are compared by class, as in RabbitMQ. The width of an integer or a float does not
// matter, nor whether text is a string or bytes. An integer never equals a float, a
// timestamp or a decimal. Tables and arrays are compared field by field by the same rule.
// The Go types are those of amqp.Table; any other type is a bug of the caller and panics.
func ArgsEqual(a, b amqp.Table) bool {
	return maps.EqualFunc(a, b, valuesEqual)
}

func valuesEqual(a, b any) bool {
	if x, ok := amqp.Integer(a); ok {
		y, ok := amqp.Integer(b)
		return ok && x == y
	}
	if x, ok := float(a); ok {
		y, ok := float(b)
		return ok && (x == y || x != x && y != y) // NaN equals NaN, or the binding could not be removed
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

func float(v any) (float64, bool) {
	switch n := v.(type) {
	case float32:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// seed makes hashes differ from process to process, so that nobody can choose arguments whose hashes are equal.
var seed = maphash.MakeSeed()

// hashArgs is the same for equal tables.
func hashArgs(t amqp.Table) (sum uint64) {
	for name, v := range t {
		sum += field{name, v}.hash() // in any order
	}
	return sum
}

// hashValue is the same for values that are equal.
func hashValue(v any) uint64 {
	if n, ok := amqp.Integer(v); ok {
		return maphash.Comparable(seed, n)
	}
	if f, ok := float(v); ok {
		if f != f { // NaN equals NaN
			return 1
		}
		return maphash.Comparable(seed, f)
	}
	switch x := v.(type) {
	case string:
		return maphash.String(seed, x)
	case []byte:
		return maphash.Bytes(seed, x)
	case amqp.Table:
		return hashArgs(x) + 3
	case []any:
		sum := uint64(2)
		for _, one := range x {
			sum = bits.RotateLeft64(sum, 5)*31 + hashValue(one)
		}
		return sum
	case nil:
		return 0
	case bool, amqp.Timestamp, amqp.Decimal:
		return maphash.Comparable(seed, x)
	}
	panic(fmt.Sprintf("exchange: %T is not an AMQP field value", v))
}
