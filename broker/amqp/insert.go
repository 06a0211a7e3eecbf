package amqp

import "encoding/binary"

// longFieldSize is what a field of type 'l' takes in addition to its name.
const longFieldSize = 1 + 1 + 8

// AppendWithLong appends to b a copy of a well-formed raw property list with an additional
// header of type 'l'. The list must not have a header of that name yet. b grows by the
// list, the header and at most the length of a table.
func AppendWithLong(b, properties []byte, name string, value int64) []byte {
	flags := PropertySet(binary.BigEndian.Uint16(properties))
	at := 2 // of the headers
	for _, has := range []PropertySet{HasContentType, HasContentEncoding} {
		if flags&has != 0 {
			at += 1 + int(properties[at])
		}
	}
	from, size := at, 0 // of what follows the table's length
	if flags&HasHeaders != 0 {
		from, size = at+4, int(binary.BigEndian.Uint32(properties[at:]))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(flags|HasHeaders))
	b = append(b, properties[2:at]...)
	b = binary.BigEndian.AppendUint32(b, uint32(size+len(name)+longFieldSize))
	b = append(b, properties[from:from+size]...)
	b = binary.BigEndian.AppendUint64(append(appendShortstr(b, name), 'l'), uint64(value))
	return append(b, properties[from+size:]...)
}
