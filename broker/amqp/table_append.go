package amqp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// AppendTable appends t with its length, keys sorted so that equal tables have
// equal octets. Beside the types that Table names it takes int and uint64 (as
// 'l') and time.Time (as 'T', in seconds). It panics on another type, a uint64
// beyond an int64 and a key of more than 255 octets, which are bugs of the
// caller.
func AppendTable(b []byte, t Table) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	for _, key := range slices.Sorted(maps.Keys(t)) {
		b = appendValue(appendShortstr(b, key), t[key])
	}
	return setLength(b, start)
}

func appendArray(b []byte, array []any) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	for _, value := range array {
		b = appendValue(b, value)
	}
	return setLength(b, start)
}

func setLength(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

func appendValue(b []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(b, 'V')
	case bool:
		return append(b, 't', bit(v))
	case string:
		return appendLongstr(append(b, 'S'), v)
	case []byte:
		return appendLongstr(append(b, 'x'), v)
	case Table:
		return AppendTable(append(b, 'F'), v)
	case []any:
		return appendArray(append(b, 'A'), v)
	case Timestamp:
		return appendLonglong(append(b, 'T'), uint64(v))
	case time.Time:
		return appendLonglong(append(b, 'T'), uint64(v.Unix()))
	}
	return appendNumber(b, value)
}

func appendNumber(b []byte, value any) []byte {
	switch v := value.(type) {
	case int8:
		return append(b, 'b', byte(v))
	case uint8:
		return append(b, 'B', v)
	case int16:
		return appendShort(append(b, 's'), uint16(v))
	case uint16:
		return appendShort(append(b, 'u'), v)
	case int32:
		return appendLong(append(b, 'I'), uint32(v))
	case uint32:
		return appendLong(append(b, 'i'), v)
	case int64:
		return appendLonglong(append(b, 'l'), uint64(v))
	case int:
		return appendLonglong(append(b, 'l'), uint64(v))
	case uint64:
		if v <= math.MaxInt64 {
			return appendLonglong(append(b, 'l'), v)
		}
	case float32:
		return appendLong(append(b, 'f'), math.Float32bits(v))
	case float64:
		return appendLonglong(append(b, 'd'), math.Float64bits(v))
	case Decimal:
		return appendLong(append(b, 'D', v.Scale), uint32(v.Value))
	}
	panic(fmt.Sprintf("amqp: no field table type for %T %v", value, value))
}
