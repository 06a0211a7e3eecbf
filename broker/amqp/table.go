package amqp

import (
	"encoding/binary"
	"math"
)

// Table is a field table (AMQP 0-9-1 §4.2.5.5). RabbitMQ and its clients use some type
// letters differently from the specification; Curfew does as they do (RabbitMQ: AMQP 0-9-1
// Errata):
//
//	t bool     b int8     s int16    I int32    l int64 (L is read alike)
//	V nil      B uint8    u uint16   i uint32   f float32   d float64
//	S string   x []byte   T Timestamp   D Decimal   F Table   A []any
//
// If a key comes twice its first value counts, as in RabbitMQ.
type Table map[string]any

// Timestamp is in Unix seconds.
type Timestamp uint64

// Decimal is Value / 10^Scale.
type Decimal struct {
	Scale uint8
	Value int32
}

// ParseTable parses the table at the front of b, which begins with its length in four
// octets, and returns what follows it. Nothing in the table aliases b. The error is an
// *Exception 502 SYNTAX_ERROR. The shape is checked before anything is allocated.
func ParseTable(b []byte, lim Limits) (t Table, rest []byte, err error) {
	n, err := tableSize(b, lim)
	if err != nil {
		return nil, b, err
	}
	return decodeTable(b[4:n]), b[n:], nil
}

// ParseTableEntries parses a table that fills b and has no length before it, such as the
// response of SASL's AMQPLAIN. Its errors are those of ParseTable.
func ParseTableEntries(b []byte, lim Limits) (Table, error) {
	left := newBudget(lim)
	if err := left.table(b, 1); err != nil {
		return nil, err
	}
	return decodeTable(b), nil
}

// The decoders below run on checked input only.

func decodeTable(b []byte) Table { return decodeEntries(b, nil) }

// decodeEntries decodes the entries whose names are wanted; wants is nil: all of them.
func decodeEntries(b []byte, wants func(name []byte) bool) Table {
	n := 0
	for f := (Fields{rest: b}); wants == nil && f.Next(); {
		n++
	}
	t := make(Table, n)
	for f := (Fields{rest: b}); f.Next(); {
		if wants != nil && !wants(f.Name) {
			continue
		}
		if _, twice := t[string(f.Name)]; !twice {
			t[string(f.Name)], _ = decodeValue(f.value)
		}
	}
	return t
}

func decodeArray(b []byte) []any {
	array := []any{}
	for len(b) > 0 {
		var value any
		value, b = decodeValue(b)
		array = append(array, value)
	}
	return array
}

// decodeValue decodes the value whose type letter is the first in b.
func decodeValue(b []byte) (value any, rest []byte) {
	kind, b := b[0], b[1:]
	n := int(fixedSize[kind])
	if n == variable {
		n = int(binary.BigEndian.Uint32(b))
		b = b[4:]
		return decodeVariable(kind, b[:n]), b[n:]
	}
	return decodeFixed(kind, b[:n]), b[n:]
}

func decodeVariable(kind byte, b []byte) any {
	switch kind {
	case 'S':
		return string(b)
	case 'x':
		return append([]byte{}, b...)
	case 'F':
		return decodeTable(b)
	}
	return decodeArray(b)
}

func decodeFixed(kind byte, b []byte) any {
	switch kind {
	case 't':
		return b[0] != 0
	case 'b':
		return int8(b[0])
	case 'B':
		return b[0]
	case 's':
		return int16(binary.BigEndian.Uint16(b))
	case 'u':
		return binary.BigEndian.Uint16(b)
	case 'I':
		return int32(binary.BigEndian.Uint32(b))
	case 'i':
		return binary.BigEndian.Uint32(b)
	case 'l', 'L':
		return int64(binary.BigEndian.Uint64(b))
	case 'f':
		return math.Float32frombits(binary.BigEndian.Uint32(b))
	case 'd':
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	case 'T':
		return Timestamp(binary.BigEndian.Uint64(b))
	case 'D':
		return Decimal{Scale: b[0], Value: int32(binary.BigEndian.Uint32(b[1:]))}
	}
	return nil // 'V'
}
