package amqp

import "encoding/binary"

// Fields walks the entries of a raw table without decoding their values or
// allocating:
//
//	for f := amqp.WalkTable(raw); f.Next(); {
//		use(f.Name)
//	}
//
// Name and Entry alias the table. An entry that ValidateTable would refuse ends the walk early.
type Fields struct {
	Name  []byte
	Entry []byte // name and value, as they stand in a table
	value []byte // with its type letter
	rest  []byte
}

// WalkTable begins a walk through the table in raw, which begins with its length.
func WalkTable(raw []byte) Fields {
	if len(raw) < 4 {
		return Fields{}
	}
	return Fields{rest: raw[4:]}
}

// Next moves to the next entry, and returns false if there is none.
func (f *Fields) Next() bool {
	if len(f.rest) == 0 {
		return false
	}
	name := 1 + int(f.rest[0])
	if name >= len(f.rest) {
		f.rest = nil
		return false
	}
	f.Name = f.rest[1:name]
	all, value := f.rest, f.rest[name:]
	n := 1 + int(fixedSize[value[0]])
	if fixedSize[value[0]] == variable && len(value) >= 5 {
		n = 5 + int(binary.BigEndian.Uint32(value[1:]))
	}
	if n < 1 || n > len(value) {
		n = len(value)
	}
	f.Entry, f.value, f.rest = all[:name+n], value[:n], value[n:]
	return true
}

// Text returns the value of the entry if it is text: a long string, or a byte array, which
// some clients send for text. It aliases the table.
func (f *Fields) Text() (text []byte, ok bool) {
	if len(f.value) < 5 || f.value[0] != 'S' && f.value[0] != 'x' {
		return nil, false
	}
	return f.value[5:], true
}
