package amqp10

import (
	"encoding/binary"
	"math"
	"slices"
)

// Append appends a value of a type that Parse returns. It panics on another type.
func Append(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, codeNull)
	case bool:
		if v {
			return append(b, codeTrue)
		}
		return append(b, codeFalse)
	case uint8:
		return append(b, codeUbyte, v)
	case int8:
		return append(b, codeByte, byte(v))
	case uint16:
		return binary.BigEndian.AppendUint16(append(b, codeUshort), v)
	case int16:
		return binary.BigEndian.AppendUint16(append(b, codeShort), uint16(v))
	case uint32:
		return appendUint(b, v)
	case uint64:
		return appendUlong(b, v)
	case int32:
		return binary.BigEndian.AppendUint32(append(b, codeInt), uint32(v))
	case int64:
		return binary.BigEndian.AppendUint64(append(b, codeLong), uint64(v))
	case float32:
		return binary.BigEndian.AppendUint32(append(b, codeFloat), math.Float32bits(v))
	case float64:
		return binary.BigEndian.AppendUint64(append(b, codeDouble), math.Float64bits(v))
	case Char:
		return binary.BigEndian.AppendUint32(append(b, codeChar), uint32(v))
	case Timestamp:
		return binary.BigEndian.AppendUint64(append(b, codeTimestamp), uint64(v))
	case UUID:
		return append(append(b, codeUUID), v[:]...)
	case Decimal:
		return append(append(b, v.Code), v.Data[:4<<(v.Code>>4-7)]...)
	case []byte:
		if room := len(v) + 5; cap(b)-len(b) < room {
			b = slices.Grow(b, len(b)+room) // a list of large values is copied as it grows: not by a quarter at a time
		}
		return append(appendSized(b, codeBinary8, len(v)), v...)
	case string:
		return AppendText(b, v)
	case Symbol:
		return AppendSymbol(b, string(v))
	case Described:
		return Append(Append(append(b, codeDescribed), v.Descriptor), v.Value)
	}
	return appendCompound(b, v)
}

func appendUint(b []byte, v uint32) []byte {
	switch {
	case v == 0:
		return append(b, codeUint0)
	case v < 256:
		return append(b, codeSmallUint, byte(v))
	}
	return binary.BigEndian.AppendUint32(append(b, codeUint), v)
}

func appendUlong(b []byte, v uint64) []byte {
	switch {
	case v == 0:
		return append(b, codeUlong0)
	case v < 256:
		return append(b, codeSmallUlng, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, codeUlong), v)
}

// appendSized appends the short or the long constructor of a value of n octets, and its size.
func appendSized(b []byte, short byte, n int) []byte {
	if n < 256 {
		return append(b, short, byte(n))
	}
	return binary.BigEndian.AppendUint32(append(b, short+0x10), uint32(n))
}

// AppendText appends a string.
func AppendText[T string | []byte](b []byte, v T) []byte {
	return append(appendSized(b, codeString8, len(v)), v...)
}

// AppendSymbol appends a symbol.
func AppendSymbol(b []byte, v string) []byte {
	return append(appendSized(b, codeSymbol8, len(v)), v...)
}

// BeginMap begins a map. Its keys and values must follow, and EndMap.
func BeginMap(b []byte) (_ []byte, start int) { return append(b, 0, 0, 0), len(b) }

// EndMap completes a map of n entries that begins at start and ends where b ends.
func EndMap(b []byte, start, n int) []byte { return shorten(b, start, codeMap8, 2*n) }

func appendCompound(b []byte, v any) []byte {
	start := len(b)
	var code byte
	var n int
	b = append(b, 0, 0, 0)
	switch v := v.(type) {
	case List:
		code, n = codeList8, len(v)
		for _, e := range v {
			b = Append(b, e)
		}
	case Map:
		code, n = codeMap8, 2*len(v)
		for _, e := range v {
			b = Append(Append(b, e.Key), e.Value)
		}
	case Array:
		return appendArray(b[:start], v)
	default:
		panic("amqp10: not a value of AMQP 1.0")
	}
	return shorten(b, start, code, n)
}

// shorten completes a list or a map that begins at start, with 3 octets for its head: in the short encoding,
// whose constructor is code, if it fits.
func shorten(b []byte, start int, code byte, n int) []byte {
	if size := len(b) - start - 2; size < 256 && n < 256 {
		b[start], b[start+1], b[start+2] = code, byte(size), byte(n)
		return b
	}
	end := len(b)
	b = append(b, 0, 0, 0, 0, 0, 0)
	copy(b[start+9:], b[start+3:end])
	return patch(b, start, code+0x10, n)
}

// patch completes a list or a map that begins at start, with 9 octets for its head.
func patch(b []byte, start int, code byte, n int) []byte {
	b[start] = code
	binary.BigEndian.PutUint32(b[start+1:], uint32(len(b)-start-5))
	binary.BigEndian.PutUint32(b[start+5:], uint32(n))
	return b
}

// appendArray appends an array. Symbols, strings and maps are written with the long constructor. Elements whose
// encodings differ in their constructor, such as a small and a large uint, are written as a list.
func appendArray(b []byte, v Array) []byte {
	start := len(b)
	b = append(append(b, make([]byte, 9)...), codeSymbol32)
	for i, e := range v {
		at := len(b)
		switch e := e.(type) {
		case Symbol:
			b = append(binary.BigEndian.AppendUint32(append(b, codeSymbol32), uint32(len(e))), e...)
		case string:
			b = append(binary.BigEndian.AppendUint32(append(b, codeString32), uint32(len(e))), e...)
		case Map:
			b = append(b, make([]byte, 9)...)
			for _, x := range e {
				b = Append(Append(b, x.Key), x.Value)
			}
			b = patch(b, at, codeMap32, 2*len(e))
		case int64: // one below 128 has a shorter encoding
			b = binary.BigEndian.AppendUint64(append(b, codeLong), uint64(e))
		default:
			b = Append(b, e)
		}
		code := b[at]
		if i == 0 {
			b[start+9] = code
		}
		if b[start+9] != code || code == codeDescribed || code>>4 == 4 {
			return Append(b[:start], List(v))
		}
		b = append(b[:at], b[at+1:]...)
	}
	return patch(b, start, codeArray32, len(v))
}
