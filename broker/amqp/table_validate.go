package amqp

import (
	"cmp"
	"encoding/binary"
)

// Limits bounds what a field table may contain, including all that is nested in it. A zero
// field means its default.
type Limits struct {
	Depth   int // tables and arrays inside one another, the outermost is 1; 16
	Entries int // named entries of all tables; 1,024
	Values  int // values of all tables and arrays; 4,096
}

const (
	defaultDepth   = 16
	defaultEntries = 1024
	defaultValues  = 4096
)

// ValidateTable checks the shape of a raw table, which must fill raw and begins with its
// length in four octets. It allocates only when it fails, and examines no more than the
// values that lim allows. Its errors are those of ParseTable.
func ValidateTable(raw []byte, lim Limits) error {
	n, err := tableSize(raw, lim)
	if err == nil && n != len(raw) {
		err = badTable("%d octets after it", len(raw)-n)
	}
	return err
}

// tableSize checks the table at the front of b and returns the number of its octets,
// including its length.
func tableSize(b []byte, lim Limits) (int, error) {
	if len(b) < 4 {
		return 0, badTable("cut short")
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if n > uint64(len(b)-4) {
		return 0, badTable("length %d, only %d octets follow", n, len(b)-4)
	}
	left := newBudget(lim)
	return 4 + int(n), left.table(b[4:4+n], 1)
}

func badTable(format string, args ...any) *Exception {
	return NewException(SyntaxError, 0, 0, "malformed table: "+format, args...)
}

// variable marks a type whose value begins with its size in four octets; unknown marks a
// type that RabbitMQ does not accept.
const (
	variable = -1
	unknown  = -2
)

// fixedSize returns the size in octets of a value, by its type letter.
var fixedSize = func() (sizes [256]int8) {
	for i := range sizes {
		sizes[i] = unknown
	}
	for size, letters := range map[int8]string{
		0: "V", 1: "tbB", 2: "su", 4: "Iif", 5: "D", 8: "lLdT", variable: "SxFA",
	} {
		for _, letter := range []byte(letters) {
			sizes[letter] = size
		}
	}
	return sizes
}()

// budget is what is left of the limits during a walk through a table.
type budget struct {
	limits          Limits
	entries, values int
}

func newBudget(lim Limits) budget {
	lim = Limits{cmp.Or(lim.Depth, defaultDepth), cmp.Or(lim.Entries, defaultEntries), cmp.Or(lim.Values, defaultValues)}
	return budget{limits: lim, entries: lim.Entries, values: lim.Values}
}

func (l *budget) table(b []byte, depth int) error {
	for len(b) > 0 {
		name := 1 + int(b[0])
		if name >= len(b) {
			return badTable("cut short")
		}
		if l.entries--; l.entries < 0 {
			return badTable("more than %d entries", l.limits.Entries)
		}
		var err error
		if b, err = l.value(b[name:], depth); err != nil {
			return err
		}
	}
	return nil
}

func (l *budget) array(b []byte, depth int) (err error) {
	for len(b) > 0 && err == nil {
		b, err = l.value(b, depth)
	}
	return err
}

// value checks the value at the front of b, which begins with its type letter and is not
// empty. It returns what follows the value.
func (l *budget) value(b []byte, depth int) (rest []byte, err error) {
	kind, b := b[0], b[1:]
	if l.values--; l.values < 0 {
		return nil, badTable("more than %d values", l.limits.Values)
	}
	n := int(fixedSize[kind])
	if n == variable {
		return l.variable(kind, b, depth)
	}
	if n == unknown {
		return nil, badTable("unknown type %q", kind)
	}
	if n > len(b) {
		return nil, badTable("cut short")
	}
	return b[n:], nil
}

func (l *budget) variable(kind byte, b []byte, depth int) (rest []byte, err error) {
	if len(b) < 4 {
		return nil, badTable("cut short")
	}
	n := uint64(binary.BigEndian.Uint32(b))
	if b = b[4:]; n > uint64(len(b)) {
		return nil, badTable("length %d, only %d octets follow", n, len(b))
	}
	switch {
	case kind != 'F' && kind != 'A':
	case depth >= l.limits.Depth:
		err = badTable("nested deeper than %d levels", l.limits.Depth)
	case kind == 'F':
		err = l.table(b[:n], depth+1)
	default:
		err = l.array(b[:n], depth+1)
	}
	return b[n:], err
}
