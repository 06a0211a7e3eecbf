package amqp10

import "reflect"

// AppendPerformative appends a performative, or a part of one, without a frame.
func AppendPerformative(b []byte, p Performative) []byte {
	f := beginList(b, codeOf(p))
	p.visit(&f)
	return f.finish()
}

// AppendTransfer appends the beginning of a frame with a transfer. The payload must follow, and EndFrame. It is
// AppendFrame without an allocation.
func AppendTransfer(b []byte, channel uint16, t *Transfer) (_ []byte, start int) {
	b, start = BeginFrame(b, FrameAMQP, channel)
	f := beginList(b, codeTransfer)
	t.visit(&f)
	return f.finish(), start
}

// ParseTransfer is ParsePerformative without an allocation; false: it is not a transfer.
func ParseTransfer(b []byte, t *Transfer) (payload []byte, is bool, err error) {
	var f fields
	payload, is, err = f.open(b, codeTransfer)
	if !is || err != nil {
		return nil, is, err
	}
	*t = Transfer{}
	t.visit(&f)
	return payload, true, f.err
}

// open begins to read the performative of that code; false: it is another.
func (f *fields) open(b []byte, code byte) (payload []byte, is bool, err error) {
	if len(b) < 3 || b[1] != codeSmallUlng || b[2] != code {
		return nil, false, nil
	}
	_, list, payload, err := cutDescribed(b)
	if err == nil {
		f.left, f.b, err = cutList(list)
	}
	return payload, true, err
}

// ParsePerformative parses the content of a frame. payload is what follows the performative.
func ParsePerformative(b []byte) (p Performative, payload []byte, err error) {
	code, list, payload, err := cutDescribed(b)
	if err != nil {
		return nil, nil, err
	}
	create, known := performatives[code]
	if !known {
		return nil, nil, ErrMalformed
	}
	p = create()
	return p, payload, read(p, list)
}

// codeOf returns the descriptor of a performative, of a section, or of what they contain.
func codeOf(p Performative) uint64 {
	if s, is := p.(*State); is {
		return s.Kind
	}
	return codes[reflect.TypeOf(p)]
}

// performatives make those that are sent in frames. codes are their descriptors, and those of what has others.
var (
	performatives = map[uint64]func() Performative{}
	codes         = map[reflect.Type]uint64{}
)

func init() {
	for code, create := range map[uint64]func() Performative{
		codeOpen: created[Open], codeBegin: created[Begin], codeAttach: created[Attach], codeFlow: created[Flow], codeTransfer: created[Transfer],
		codeDisposition: created[Disposition], codeDetach: created[Detach], codeEnd: created[End], codeClose: created[Close],
		codeSASLMechanisms: created[SASLMechanisms], codeSASLInit: created[SASLInit], codeSASLOutcome: created[SASLOutcome],
	} {
		performatives[code], codes[reflect.TypeOf(create())] = create, code
	}
	for code, part := range map[uint64]Performative{codeError: &Error{}, codeSource: &Source{}, codeTarget: &Target{}, SectionHeader: &Header{}, SectionProperties: &Properties{}} {
		codes[reflect.TypeOf(part)] = code
	}
}

func created[T any, P interface {
	*T
	Performative
}]() Performative {
	return P(new(T))
}

// cutDescribed cuts off a value that a number describes. value begins with its constructor.
func cutDescribed(b []byte) (code uint64, value, rest []byte, err error) {
	if len(b) < 3 || b[0] != codeDescribed {
		return 0, nil, nil, ErrMalformed
	}
	after := b[3:]
	switch c := b[1]; c {
	case codeSmallUlng:
		code = uint64(b[2])
	case codeUlong0, codeUlong:
		data, behind, err := cut(c, b[2:])
		if err != nil {
			return 0, nil, nil, err
		}
		code, after = unsigned(data), behind
	default:
		return 0, nil, nil, ErrMalformed // a symbolic descriptor, which no client sends
	}
	if rest, err = skip(after); err != nil {
		return 0, nil, nil, err
	}
	return code, after[:len(after)-len(rest)], rest, nil
}

// ParseDisposition is ParsePerformative without an allocation, unless there is more to its state than the kind; false:
// it is not a disposition. The state is put into the one that d has.
func ParseDisposition(b []byte, d *Disposition, state *State) (is bool, err error) {
	var f fields
	_, is, err = f.open(b, codeDisposition)
	if !is || err != nil {
		return is, err
	}
	*d = Disposition{State: state}
	d.visit(&f)
	return true, f.err
}

// read reads the fields of p from a list.
func read(p Performative, list []byte) error {
	f, err := openList(list)
	if err != nil {
		return err
	}
	p.visit(&f)
	return f.err
}

// openList begins to read the fields of a list.
func openList(list []byte) (fields, error) {
	n, data, err := cutList(list)
	return fields{b: data, left: n}, err
}

// beginList begins to write a described list.
func beginList(b []byte, code uint64) fields {
	b = appendUlong(append(b, codeDescribed), code)
	f := fields{writing: true, start: len(b), b: append(b, 0, 0, 0)}
	f.end = len(f.b)
	return f
}

// finish completes the list.
func (f *fields) finish() []byte {
	if f.kept == 0 {
		return append(f.b[:f.start], codeList0)
	}
	return shorten(f.b[:f.end], f.start, codeList8, f.kept)
}

// cutList returns the elements of a list.
func cutList(list []byte) (n int, elements []byte, err error) {
	if len(list) == 0 {
		return 0, nil, ErrMalformed
	}
	switch code := list[0]; code {
	case codeList0:
		return 0, nil, nil
	case codeList8, codeList32:
		data, _, err := cut(code, list[1:])
		if err != nil {
			return 0, nil, err
		}
		return count(code, data)
	}
	return 0, nil, ErrMalformed
}
