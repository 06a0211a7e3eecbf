package amqp

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

const maxShortString = 255

// appendShortstr panics on more than 255 octets: names are checked where they come in, so a
// longer one is a bug of the caller.
func appendShortstr[S string | []byte](b []byte, s S) []byte {
	if len(s) > maxShortString {
		panic(fmt.Sprintf("amqp: short string of %d octets", len(s)))
	}
	return append(append(b, byte(len(s))), s...)
}

func appendText(b []byte, s string, a *argument) []byte {
	switch {
	case a.long:
		return appendLongstr(b, s)
	case a.cut:
		s = cutText(s)
	}
	return appendShortstr(b, s)
}

// cutText cuts between runes, because some clients refuse text that is not UTF-8.
func cutText(s string) string {
	if len(s) <= maxShortString {
		return s
	}
	end := maxShortString
	for end > maxShortString-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

func appendLongstr[S string | []byte](b []byte, s S) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}
