package amqp10

import "encoding/binary"

// fields reads or writes the fields of a list in their order. An absent field, which is null or not
// there at all, has its default; one with its default is written as null, and nothing is written
// after the last that has not.
type fields struct {
	writing bool
	b       []byte

	start            int // writing: where the list begins
	end, count, kept int // where the last field with a value ends, how many fields there are, and until that one

	left, pos int // reading: how many fields are left, and where the next begins
	err       error
}

// next cuts off the next field; false: it is absent. value begins with its constructor.
func (f *fields) next() (code byte, data []byte, ok bool) {
	if f.err != nil || f.left == 0 {
		return 0, nil, false
	}
	f.left--
	b := f.b[f.pos:]
	if len(b) == 0 {
		f.err = ErrMalformed
		return 0, nil, false
	}
	if code = b[0]; code>>4 == 4 { // null, true, 0 and the like: most fields are only a constructor
		f.pos++
		return code, nil, code != codeNull
	}
	data, rest, err := cut(code, b[1:])
	if err != nil {
		f.err = err
		return 0, nil, false
	}
	f.pos = len(f.b) - len(rest)
	return code, data, true
}

// put counts a field that was written, or writes null.
func (f *fields) put(given bool) {
	f.count++
	if given {
		f.end, f.kept = len(f.b), f.count
		return
	}
	f.b = append(f.b, codeNull)
}

// number reads an unsigned integer that is at most most.
func (f *fields) number(most, absent uint64) uint64 {
	code, data, ok := f.next()
	if !ok {
		return absent
	}
	switch code {
	case codeUbyte, codeUshort, codeUint, codeSmallUint, codeUint0, codeUlong, codeSmallUlng, codeUlong0:
	default:
		f.err = ErrMalformed
		return absent
	}
	n := unsigned(data)
	if n > most {
		f.err = ErrMalformed
	}
	return n
}

func (f *fields) uint(v *uint32, absent uint32) {
	if !f.writing {
		*v = uint32(f.number(Unlimited, uint64(absent)))
		return
	}
	if *v != absent {
		f.b = appendUint(f.b, *v)
	}
	f.put(*v != absent)
}

// must is a field that may not be absent.
func (f *fields) must(v *uint32) {
	if f.writing {
		f.always(v)
		return
	}
	var given OptUint
	f.opt(&given)
	if *v = given.Value; !given.Set {
		f.err = ErrMalformed
	}
}

// always is a uint that is always written.
func (f *fields) always(v *uint32) {
	if !f.writing {
		*v = uint32(f.number(Unlimited, 0))
		return
	}
	f.b = appendUint(f.b, *v)
	f.put(true)
}

func (f *fields) opt(v *OptUint) {
	if !f.writing {
		before := f.left
		n := f.number(Unlimited, 1<<63)
		if v.Set = before > 0 && n != 1<<63; v.Set {
			v.Value = uint32(n)
		}
		return
	}
	if v.Set {
		f.b = appendUint(f.b, v.Value)
	}
	f.put(v.Set)
}

// optShort is opt for a ushort.
func (f *fields) optShort(v *OptUint) {
	if !f.writing {
		f.opt(v)
		return
	}
	if v.Set {
		f.b = binary.BigEndian.AppendUint16(append(f.b, codeUshort), uint16(v.Value))
	}
	f.put(v.Set)
}

func (f *fields) ushort(v *uint16, absent uint16) {
	if !f.writing {
		*v = uint16(f.number(65535, uint64(absent)))
		return
	}
	if *v != absent {
		f.b = binary.BigEndian.AppendUint16(append(f.b, codeUshort), *v)
	}
	f.put(*v != absent)
}

func (f *fields) ubyte(v *uint8, absent uint8) {
	if !f.writing {
		*v = uint8(f.number(255, uint64(absent)))
		return
	}
	if *v != absent {
		f.b = append(f.b, codeUbyte, *v)
	}
	f.put(*v != absent)
}

func (f *fields) ulong(v *uint64) {
	if !f.writing {
		*v = f.number(1<<64-1, 0)
		return
	}
	if *v != 0 {
		f.b = appendUlong(f.b, *v)
	}
	f.put(*v != 0)
}

func (f *fields) flag(v *bool) {
	if f.writing {
		if *v {
			f.b = append(f.b, codeTrue)
		}
		f.put(*v)
		return
	}
	code, data, ok := f.next()
	switch {
	case !ok || code == codeFalse:
		*v = false
	case code == codeTrue:
		*v = true
	case code == codeBoolean:
		*v = data[0] != 0
	default:
		f.err = ErrMalformed
	}
}

// role is a flag that is always written.
func (f *fields) role(v *bool) {
	if !f.writing {
		f.flag(v)
		return
	}
	f.b = append(f.b, codeFalse)
	if *v {
		f.b[len(f.b)-1] = codeTrue
	}
	f.put(true)
}

func (f *fields) octets(short byte) []byte {
	code, data, ok := f.next()
	switch {
	case !ok:
		return nil
	case code != short && code != short+0x10:
		f.err = ErrMalformed
	}
	return data
}

func (f *fields) text(v *string) {
	if !f.writing {
		*v = string(f.octets(codeString8))
		return
	}
	if *v != "" || f.count == 0 { // the first text of a performative is its name, which must be there
		f.b = AppendText(f.b, *v)
	}
	f.put(*v != "" || f.count == 0)
}

func (f *fields) symbol(v *string) {
	if !f.writing {
		*v = string(f.octets(codeSymbol8))
		return
	}
	if *v != "" {
		f.b = AppendSymbol(f.b, *v)
	}
	f.put(*v != "")
}

func (f *fields) binary(v *[]byte) {
	if !f.writing {
		*v = f.octets(codeBinary8)
		return
	}
	if *v != nil {
		f.b = append(appendSized(f.b, codeBinary8, len(*v)), *v...)
	}
	f.put(*v != nil)
}

// values are fields of any type; nil: absent.
func (f *fields) values(all ...*any) {
	for _, v := range all {
		switch {
		case f.writing:
			if *v != nil {
				f.b = Append(f.b, *v)
			}
			f.put(*v != nil)
		case f.err == nil && f.left > 0:
			f.left--
			var rest []byte
			*v, rest, f.err = Parse(f.b[f.pos:])
			f.pos = len(f.b) - len(rest)
		}
	}
}

// part is a described list within a performative.
type part[T any] interface {
	*T
	Performative
}

// visitPart is a field that is a Source, a Target, a State or an Error; nil: absent.
func visitPart[T any, P part[T]](f *fields, v *P) {
	if f.writing {
		if *v != nil {
			f.b = AppendPerformative(f.b, *v)
		}
		f.put(*v != nil)
		return
	}
	given := *v // for ParseDisposition
	*v = nil
	if f.err != nil || f.left == 0 {
		return
	}
	f.left--
	b := f.b[f.pos:]
	if len(b) > 0 && b[0] == codeNull {
		f.pos++
		return
	}
	code, list, rest, err := cutDescribed(b)
	if err != nil {
		f.err = err
		return
	}
	if f.pos, *v = len(f.b)-len(rest), given; given == nil {
		*v = new(T)
	}
	**v = *new(T)
	switch p := any(*v).(type) {
	case *State:
		p.Kind = code
	case *Target:
		p.Coordinator = code == codeCoordinator
	}
	if t, is := any(*v).(*Target); code != codeOf(*v) && !(is && t.Coordinator) {
		f.err = ErrMalformed
		return
	}
	if list[0] != codeList0 {
		f.err = read(*v, list)
	}
}
