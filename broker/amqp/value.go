package amqp

import "fmt"

// Integer returns a field value of any integer type, or false if v has another type. An
// unsigned 64-bit value, which no field has, is not accepted.
func Integer(v any) (n int64, ok bool) {
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
	}
	return 0, false
}

// TypeName returns RabbitMQ's name for the type of a field value, as in its error texts. It
// panics on a Go type that Table does not allow.
func TypeName(v any) string {
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
	case int64, int:
		return "long"
	case float32:
		return "float"
	case float64:
		return "double"
	case Decimal:
		return "decimal"
	case string:
		return "longstr"
	case []byte:
		return "binary"
	case Timestamp:
		return "timestamp"
	case Table:
		return "table"
	case []any:
		return "array"
	case nil:
		return "void"
	}
	panic(fmt.Sprintf("amqp: %T is not a field value", v))
}
