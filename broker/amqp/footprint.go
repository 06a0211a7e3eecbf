package amqp

// The memory that a decoded table takes besides its texts, measured: for a map and for each
// of its entries, for an element of an array, for a value that does not fit into an
// interface.
const (
	mapBytes   = 48
	groupBytes = 8 * entryBytes // the smallest map with entries
	entryBytes = 33
	arrayBytes = 24
	valueBytes = 16
	boxBytes   = 8
)

// Footprint estimates the memory that the table takes, in bytes. It is never less than the
// number of octets of its texts.
func (t Table) Footprint() int64 {
	if t == nil {
		return 0
	}
	n := int64(mapBytes)
	if len(t) > 0 {
		n += max(groupBytes, int64(len(t))*entryBytes*3/2) // maps are two thirds full on average
	}
	for key, v := range t {
		n += int64(len(key)) + footprint(v)
	}
	return n
}

func footprint(v any) int64 {
	switch v := v.(type) {
	case nil, bool, int8, uint8:
		return 0
	case string:
		return valueBytes + int64(len(v))
	case []byte:
		return arrayBytes + int64(len(v))
	case Table:
		return v.Footprint()
	case []any:
		n := int64(arrayBytes)
		for _, one := range v {
			n += valueBytes + footprint(one)
		}
		return n
	}
	return boxBytes
}
