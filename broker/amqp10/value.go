package amqp10

import (
	"encoding/binary"
	"errors"
	"math"
)

// The values of AMQP 1.0 that have no type of Go. The others are nil, bool, uint8 to uint64, int8
// to int64, float32, float64, string and []byte.
type (
	Symbol    string
	UUID      [16]byte
	Timestamp int64 // ms since 1970
	Char      rune
	List      []any
	Array     []any
	Map       []Entry // in the order of the wire
	// Decimal is a decimal32, decimal64 or decimal128, which is only passed on.
	Decimal struct {
		Code byte
		Data [16]byte // the first octets, as many as the code says
	}
	// Described is a value with a descriptor that is not a part of the protocol.
	Described struct{ Descriptor, Value any }
)

// Entry is a pair of a Map.
type Entry struct{ Key, Value any }

// Get returns the value of a key that is a symbol or a string; nil: there is none.
func (m Map) Get(key string) any {
	for _, e := range m {
		switch k := e.Key.(type) {
		case Symbol:
			if string(k) == key {
				return e.Value
			}
		case string:
			if k == key {
				return e.Value
			}
		}
	}
	return nil
}

// ErrMalformed is the error of everything here: the octets are not what they have to be, or exceed a bound.
var ErrMalformed = errors.New("amqp10: malformed or too deeply nested value")

const (
	maxDepth    = 16
	maxElements = 4096
)

// The constructors that are written, and those that need a name (AMQP 1.0 §1.6).
const (
	codeDescribed = 0x00
	codeNull      = 0x40
	codeTrue      = 0x41
	codeFalse     = 0x42
	codeUint0     = 0x43
	codeUlong0    = 0x44
	codeList0     = 0x45
	codeUbyte     = 0x50
	codeByte      = 0x51
	codeSmallUint = 0x52
	codeSmallUlng = 0x53
	codeSmallInt  = 0x54
	codeSmallLong = 0x55
	codeBoolean   = 0x56
	codeUshort    = 0x60
	codeShort     = 0x61
	codeUint      = 0x70
	codeInt       = 0x71
	codeFloat     = 0x72
	codeChar      = 0x73
	codeDecimal32 = 0x74
	codeUlong     = 0x80
	codeLong      = 0x81
	codeDouble    = 0x82
	codeTimestamp = 0x83
	codeDecimal64 = 0x84
	codeDecimal16 = 0x94
	codeUUID      = 0x98
	codeBinary8   = 0xa0
	codeString8   = 0xa1
	codeSymbol8   = 0xa3
	codeBinary32  = 0xb0
	codeString32  = 0xb1
	codeSymbol32  = 0xb3
	codeList8     = 0xc0
	codeMap8      = 0xc1
	codeList32    = 0xd0
	codeMap32     = 0xd1
	codeArray8    = 0xe0
	codeArray32   = 0xf0
)

// cut cuts the data of a value with a known constructor off b. The data of a list, a map or an array
// begins with its count.
func cut(code byte, b []byte) (data, rest []byte, err error) {
	n := 0
	switch code >> 4 {
	case 4:
	case 5:
		n = 1
	case 6:
		n = 2
	case 7:
		n = 4
	case 8:
		n = 8
	case 9:
		n = 16
	case 0xa, 0xc, 0xe:
		if len(b) < 1 {
			return nil, nil, ErrMalformed
		}
		n, b = int(b[0]), b[1:]
	case 0xb, 0xd, 0xf:
		if len(b) < 4 {
			return nil, nil, ErrMalformed
		}
		size := binary.BigEndian.Uint32(b)
		if b = b[4:]; uint64(size) > uint64(len(b)) {
			return nil, nil, ErrMalformed
		}
		n = int(size)
	default:
		return nil, nil, ErrMalformed
	}
	if n > len(b) {
		return nil, nil, ErrMalformed
	}
	return b[:n:n], b[n:], nil
}

// skip returns what follows a value.
func skip(b []byte) (rest []byte, err error) {
	for parts := 1; parts > 0; parts-- {
		if len(b) == 0 || parts > maxDepth {
			return nil, ErrMalformed
		}
		code := b[0]
		if b = b[1:]; code == codeDescribed {
			parts += 2 // the descriptor and the value
			continue
		}
		if _, b, err = cut(code, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Parse parses one value, and returns what follows it.
func Parse(b []byte) (v any, rest []byte, err error) {
	p := parser{left: maxElements}
	return p.value(b, 0)
}

// parser bounds the elements of one value.
type parser struct{ left int }

func (p *parser) value(b []byte, depth int) (v any, rest []byte, err error) {
	if len(b) == 0 || depth > maxDepth {
		return nil, nil, ErrMalformed
	}
	code := b[0]
	if b = b[1:]; code != codeDescribed {
		data, rest, err := cut(code, b)
		if err != nil {
			return nil, nil, err
		}
		v, err = p.data(code, data, depth)
		return v, rest, err
	}
	var d Described
	if d.Descriptor, b, err = p.value(b, depth+1); err == nil {
		d.Value, b, err = p.value(b, depth+1)
	}
	return d, b, err
}

func (p *parser) data(code byte, b []byte, depth int) (any, error) {
	if p.left--; p.left < 0 {
		return nil, ErrMalformed
	}
	switch code {
	case codeNull:
		return nil, nil
	case codeTrue:
		return true, nil
	case codeFalse:
		return false, nil
	case codeBoolean:
		return b[0] != 0, nil
	case codeUbyte:
		return b[0], nil
	case codeByte:
		return int8(b[0]), nil
	case codeUshort:
		return binary.BigEndian.Uint16(b), nil
	case codeShort:
		return int16(binary.BigEndian.Uint16(b)), nil
	case codeUint, codeSmallUint, codeUint0:
		return uint32(unsigned(b)), nil
	case codeUlong, codeSmallUlng, codeUlong0:
		return unsigned(b), nil
	case codeInt:
		return int32(binary.BigEndian.Uint32(b)), nil
	case codeSmallInt:
		return int32(int8(b[0])), nil
	case codeLong:
		return int64(binary.BigEndian.Uint64(b)), nil
	case codeSmallLong:
		return int64(int8(b[0])), nil
	case codeFloat:
		return math.Float32frombits(binary.BigEndian.Uint32(b)), nil
	case codeDouble:
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	case codeChar:
		return Char(binary.BigEndian.Uint32(b)), nil
	case codeTimestamp:
		return Timestamp(binary.BigEndian.Uint64(b)), nil
	case codeUUID:
		return UUID(b), nil
	case codeDecimal32, codeDecimal64, codeDecimal16:
		d := Decimal{Code: code}
		copy(d.Data[:], b)
		return d, nil
	case codeBinary8, codeBinary32:
		return b, nil
	case codeString8, codeString32:
		return string(b), nil
	case codeSymbol8, codeSymbol32:
		return Symbol(b), nil
	}
	return p.compound(code, b, depth)
}

// unsigned reads an integer of as many octets as there are.
func unsigned(b []byte) (n uint64) {
	for _, o := range b {
		n = n<<8 | uint64(o)
	}
	return n
}

func (p *parser) compound(code byte, b []byte, depth int) (v any, err error) {
	if code == codeList0 {
		return List{}, nil
	}
	n, b, err := count(code, b)
	if err != nil || n > p.left {
		return nil, ErrMalformed
	}
	all := make([]any, 0, n)
	switch code {
	case codeArray8, codeArray32:
		if all, err = p.array(all, n, b, depth); err == nil {
			return Array(all), nil
		}
		return nil, err
	case codeList8, codeList32, codeMap8, codeMap32:
	default:
		return nil, ErrMalformed
	}
	for range n {
		if v, b, err = p.value(b, depth+1); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	switch {
	case len(b) != 0:
		return nil, ErrMalformed
	case code == codeList8 || code == codeList32:
		return List(all), nil
	case n%2 != 0:
		return nil, ErrMalformed
	}
	m := make(Map, 0, n/2)
	for i := 0; i < n; i += 2 {
		m = append(m, Entry{all[i], all[i+1]})
	}
	return m, nil
}

// count reads the number of elements of a list, a map or an array.
func count(code byte, b []byte) (n int, rest []byte, err error) {
	width := 4
	if code>>4 == 0xc || code>>4 == 0xe {
		width = 1
	}
	if len(b) < width || unsigned(b[:width]) > math.MaxInt32 {
		return 0, nil, ErrMalformed
	}
	return int(unsigned(b[:width])), b[width:], nil
}

// array appends n elements with a shared constructor.
func (p *parser) array(all []any, n int, b []byte, depth int) ([]any, error) {
	if len(b) == 0 || depth > maxDepth {
		return nil, ErrMalformed
	}
	code := b[0]
	b = b[1:]
	var descriptor any
	if code == codeDescribed {
		var err error
		if descriptor, b, err = p.value(b, depth+1); err != nil || len(b) == 0 {
			return nil, ErrMalformed
		}
		code, b = b[0], b[1:]
	}
	for range n {
		data, rest, err := cut(code, b)
		if err != nil {
			return nil, err
		}
		v, err := p.data(code, data, depth+1)
		if err != nil {
			return nil, err
		}
		if b = rest; descriptor != nil {
			v = Described{descriptor, v}
		}
		all = append(all, v)
	}
	if len(b) != 0 {
		return nil, ErrMalformed
	}
	return all, nil
}
