package amqp

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"
)

// AppendTable appends t with its length. Keys are sorted, so that equal tables have equal
// octets. In addition to Table's types it accepts int and uint64 (as 'l') and time.Time (as
// 'T', in seconds). It panics on any other type, on a uint64 that does not fit into an
// int64, and on a key of more than 255 octets, which are bugs of the caller.
func AppendTable(b []byte, t Table) []byte {
	b, start := OpenTable(b)
	var few [16]string // enough for most tables, so that sorting does not allocate
	keys := slices.AppendSeq(few[:0], maps.Keys(t))
	slices.Sort(keys)
	for _, key := range keys {
		b = appendValue(appendShortstr(b, key), t[key])
	}
	return CloseTable(b, start)
}

func appendArray(b []byte, array []any) []byte {
	b, start := OpenTable(b)
	for _, value := range array {
		b = appendValue(b, value)
	}
	return CloseTable(b, start)
}

// OpenTable begins a table, or an array, which the caller then writes entry by entry
// without building a map. CloseTable needs the offset at which it began.
func OpenTable(b []byte) (out []byte, start int) { return append(b, 0, 0, 0, 0), len(b) }

// CloseTable ends the table that OpenTable began.
func CloseTable(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-4))
	return b
}

// AppendKey begins an entry of an open table. The caller appends the value, which must have
// the type of kind. AppendKey panics on a key of more than 255 octets.
func AppendKey(b []byte, key string, kind byte) []byte { return append(appendShortstr(b, key), kind) }

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
		return binary.BigEndian.AppendUint64(append(b, 'T'), uint64(v))
	case time.Time:
		return binary.BigEndian.AppendUint64(append(b, 'T'), uint64(v.Unix()))
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
		return binary.BigEndian.AppendUint16(append(b, 's'), uint16(v))
	case uint16:
		return binary.BigEndian.AppendUint16(append(b, 'u'), v)
	case int32:
		return binary.BigEndian.AppendUint32(append(b, 'I'), uint32(v))
	case uint32:
		return binary.BigEndian.AppendUint32(append(b, 'i'), v)
	case int64:
		return binary.BigEndian.AppendUint64(append(b, 'l'), uint64(v))
	case int:
		return binary.BigEndian.AppendUint64(append(b, 'l'), uint64(v))
	case uint64:
		if v <= math.MaxInt64 {
			return binary.BigEndian.AppendUint64(append(b, 'l'), v)
		}
	case float32:
		return binary.BigEndian.AppendUint32(append(b, 'f'), math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, 'd'), math.Float64bits(v))
	case Decimal:
		return binary.BigEndian.AppendUint32(append(b, 'D', v.Scale), uint32(v.Value))
	}
	panic(fmt.Sprintf("amqp: no field table type for %T %v", value, value))
}
