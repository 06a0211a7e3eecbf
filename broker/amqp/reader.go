package amqp

import (
	"encoding/binary"
	"errors"
	"reflect"
	"unicode/utf8"
)

// cursor takes fields off the front of a payload. It remembers the first failure: every
// later read returns a zero value. So code that reads a list of fields looks like that list
// and checks for an error once, at the end.
type cursor struct {
	rest   []byte
	failed bool
}

func (c *cursor) take(n int) []byte {
	if c.failed || n > len(c.rest) {
		c.failed = true
		return nil
	}
	taken := c.rest[:n:n]
	c.rest = c.rest[n:]
	return taken
}

func (c *cursor) octet() uint8 {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) short() uint16 {
	if b := c.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (c *cursor) long() uint32 {
	if b := c.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (c *cursor) longlong() uint64 {
	if b := c.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

// shortstr and longstr alias the payload.
func (c *cursor) shortstr() []byte { return c.take(int(c.octet())) }

func (c *cursor) longstr() []byte {
	n := c.long()
	if uint64(n) > uint64(len(c.rest)) {
		c.failed = true
	}
	return c.take(int(n))
}

// rawTable returns a table with its length, its entries unchecked.
func (c *cursor) rawTable() []byte {
	whole := c.rest
	body := c.longstr()
	if c.failed {
		return nil
	}
	return whole[: 4+len(body) : 4+len(body)]
}

// reader is a cursor over a method's arguments. It returns copies.
type reader struct {
	cursor
	limits Limits
	err    error // why it failed, unless the payload is too short
}

// text reads a text. Names must be UTF-8, as RabbitMQ requires.
func (r *reader) text(a *argument) string {
	if a.long {
		return string(r.longstr())
	}
	s := r.shortstr()
	if !a.octets && !utf8.Valid(s) {
		r.fail(NewException(FrameError, 0, 0, "Malformed UTF-8 in shortstr"))
	}
	return string(s)
}

func (r *reader) number(kind reflect.Kind) uint64 {
	switch kind {
	case reflect.Uint8:
		return uint64(r.octet())
	case reflect.Uint16:
		return uint64(r.short())
	case reflect.Uint32:
		return uint64(r.long())
	}
	return r.longlong()
}

// skip passes a reserved argument.
func (r *reader) skip(a *argument) {
	switch {
	case a.long:
		r.longstr()
	case a.kind == reflect.String:
		r.shortstr()
	case a.kind == reflect.Uint16:
		r.short()
	}
}

func (r *reader) table() Table {
	if r.failed {
		return nil
	}
	t, rest, err := ParseTable(r.rest, r.limits)
	if err != nil {
		r.fail(err)
	}
	r.rest = rest
	return t
}

func (r *reader) fail(why error) {
	if !r.failed {
		r.failed, r.err = true, why
	}
}

// done returns nil if all fields were present and nothing follows them.
func (r *reader) done(id MethodID) error {
	if !r.failed && len(r.rest) == 0 {
		return nil
	}
	var e *Exception
	if !errors.As(r.err, &e) {
		return badMethod(id)
	}
	e.Class, e.Method = id.Class(), id.Method()
	return e
}

func badMethod(id MethodID) *Exception {
	return NewException(SyntaxError, id.Class(), id.Method(), "cannot decode %s", id)
}
