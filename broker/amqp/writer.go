package amqp

import (
	"encoding/binary"
	"fmt"
)

const maxShortString = 255

func appendOctet(b []byte, v uint8) []byte     { return append(b, v) }
func appendShort(b []byte, v uint16) []byte    { return binary.BigEndian.AppendUint16(b, v) }
func appendLong(b []byte, v uint32) []byte     { return binary.BigEndian.AppendUint32(b, v) }
func appendLonglong(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// appendShortstr panics on more than 255 octets: names are checked where they
// come in, so a longer one here is a bug of the caller.
func appendShortstr[S string | []byte](b []byte, s S) []byte {
	if len(s) > maxShortString {
		panic(fmt.Sprintf("amqp: short string of %d octets", len(s)))
	}
	return append(append(b, byte(len(s))), s...)
}

// appendText appends a reply text, cut to what a short string holds.
func appendText(b []byte, s string) []byte {
	return appendShortstr(b, s[:min(len(s), maxShortString)])
}

func appendLongstr[S string | []byte](b []byte, s S) []byte {
	return append(appendLong(b, uint32(len(s))), s...)
}

// appendBits packs up to eight bits into one octet, lowest first
// (AMQP 0-9-1 §4.2.5.2).
func appendBits(b []byte, bits ...bool) []byte {
	var octet byte
	for i, bit := range bits {
		if bit {
			octet |= 1 << i
		}
	}
	return append(b, octet)
}
