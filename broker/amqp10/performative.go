package amqp10

import (
	"encoding/binary"
	"slices"
)

// The descriptors of what is sent in frames and of what that contains.
const (
	codeOpen           = 0x10
	codeBegin          = 0x11
	codeAttach         = 0x12
	codeFlow           = 0x13
	codeTransfer       = 0x14
	codeDisposition    = 0x15
	codeDetach         = 0x16
	codeEnd            = 0x17
	codeClose          = 0x18
	codeError          = 0x1d
	codeSource         = 0x28
	codeTarget         = 0x29
	codeCoordinator    = 0x30
	codeSASLMechanisms = 0x40
	codeSASLInit       = 0x41
	codeSASLOutcome    = 0x44

	StateReceived uint64 = 0x23
	StateAccepted uint64 = 0x24
	StateRejected uint64 = 0x25
	StateReleased uint64 = 0x26
	StateModified uint64 = 0x27
)

// Performative is the content of a frame.
type Performative interface{ visit(*fields) }

// OptUint is a uint that may be absent.
type OptUint struct {
	Set   bool
	Value uint32
}

// Uint is one that is there.
func Uint(n uint32) OptUint { return OptUint{true, n} }

// Unlimited is the default of limits that are absent.
const Unlimited = 1<<32 - 1

// Roles and settlement modes (AMQP 1.0 §2.8).
const (
	RoleSender   = false
	RoleReceiver = true

	SendUnsettled, SendSettled, SendMixed uint8 = 0, 1, 2
	ReceiveFirst, ReceiveSecond           uint8 = 0, 1
)

// The performatives. A field that is absent has its default: zero, if not said otherwise.
type (
	Open struct {
		ContainerID, Hostname                                string
		MaxFrameSize                                         uint32 // Unlimited if absent
		ChannelMax                                           uint16 // 65535 if absent
		IdleTimeout                                          OptUint
		OutgoingLocales, IncomingLocales, Offered, Requested any
		Properties                                           any // Map
	}
	Begin struct {
		RemoteChannel                                  OptUint
		NextOutgoingID, IncomingWindow, OutgoingWindow uint32
		HandleMax                                      uint32 // Unlimited if absent
		Offered, Requested, Properties                 any
	}
	Attach struct {
		Name                           string
		Handle                         uint32
		Role                           bool
		SenderMode                     uint8 // SendMixed if absent
		ReceiverMode                   uint8
		Source                         *Source
		Target                         *Target
		Unsettled                      any
		IncompleteUnsettled            bool
		InitialDeliveryCount           OptUint
		MaxMessageSize                 uint64
		Offered, Requested, Properties any
	}
	Flow struct {
		NextIncomingID                                 OptUint
		IncomingWindow, NextOutgoingID, OutgoingWindow uint32
		Handle, DeliveryCount, LinkCredit, Available   OptUint
		Drain, Echo                                    bool
		Properties                                     any
	}
	Transfer struct {
		Handle                     uint32
		DeliveryID                 OptUint
		DeliveryTag                []byte
		MessageFormat              OptUint
		Settled, More              bool
		ReceiverMode               uint8
		State                      *State
		Resume, Aborted, Batchable bool
	}
	Disposition struct {
		Role      bool
		First     uint32
		Last      OptUint
		Settled   bool
		State     *State
		Batchable bool
	}
	Detach struct {
		Handle uint32
		Closed bool
		Error  *Error
	}
	End   struct{ Ending }
	Close struct{ Ending }
	// Ending is why a session or a connection ends; nil: as it should.
	Ending struct{ Error *Error }

	SASLMechanisms struct{ Mechanisms Array }
	SASLInit       struct {
		Mechanism string
		Response  []byte
		Hostname  string
	}
	SASLOutcome struct{ Code uint8 } // 0 ok, 1 wrong credentials, 2 system error

	// Error says why something ends. Condition is a symbol such as amqp:not-found.
	Error struct {
		Condition, Description string
		Info                   any
	}
	Source struct {
		Address                              any // a string; nil: none
		Durable                              uint32
		ExpiryPolicy                         string
		Timeout                              uint32
		Dynamic                              bool
		DynamicProperties                    any
		DistributionMode                     string
		Filter                               any
		DefaultOutcome, Outcomes, Capability any
	}
	Target struct {
		Address           any
		Durable           uint32
		ExpiryPolicy      string
		Timeout           uint32
		Dynamic           bool
		DynamicProperties any
		Capability        any

		Coordinator bool // it is the target of transactions instead; its fields are not read
	}
	// State is the state of a delivery: its kind, and what that kind has.
	State struct {
		Kind                              uint64
		Error                             *Error // rejected
		DeliveryFailed, UndeliverableHere bool   // modified
		Annotations                       any    // modified
	}
)

func (p *Open) visit(f *fields) {
	f.text(&p.ContainerID)
	f.text(&p.Hostname)
	f.uint(&p.MaxFrameSize, Unlimited)
	f.ushort(&p.ChannelMax, 65535)
	f.opt(&p.IdleTimeout)
	f.values(&p.OutgoingLocales, &p.IncomingLocales, &p.Offered, &p.Requested, &p.Properties)
}

func (p *Begin) visit(f *fields) {
	f.optShort(&p.RemoteChannel)
	f.must(&p.NextOutgoingID)
	f.must(&p.IncomingWindow)
	f.must(&p.OutgoingWindow)
	f.uint(&p.HandleMax, Unlimited)
	f.values(&p.Offered, &p.Requested, &p.Properties)
}

func (p *Attach) visit(f *fields) {
	f.text(&p.Name)
	f.must(&p.Handle)
	f.role(&p.Role)
	f.ubyte(&p.SenderMode, SendMixed)
	f.ubyte(&p.ReceiverMode, ReceiveFirst)
	visitPart(f, &p.Source)
	visitPart(f, &p.Target)
	f.values(&p.Unsettled)
	f.flag(&p.IncompleteUnsettled)
	f.opt(&p.InitialDeliveryCount)
	f.ulong(&p.MaxMessageSize)
	f.values(&p.Offered, &p.Requested, &p.Properties)
}

func (p *Flow) visit(f *fields) {
	f.opt(&p.NextIncomingID)
	f.must(&p.IncomingWindow)
	f.must(&p.NextOutgoingID)
	f.must(&p.OutgoingWindow)
	f.opt(&p.Handle)
	f.opt(&p.DeliveryCount)
	f.opt(&p.LinkCredit)
	f.opt(&p.Available)
	f.flag(&p.Drain)
	f.flag(&p.Echo)
	f.values(&p.Properties)
}

func (p *Transfer) visit(f *fields) {
	f.must(&p.Handle)
	f.opt(&p.DeliveryID)
	f.binary(&p.DeliveryTag)
	f.opt(&p.MessageFormat)
	f.flag(&p.Settled)
	f.flag(&p.More)
	f.ubyte(&p.ReceiverMode, ReceiveFirst)
	visitPart(f, &p.State)
	f.flag(&p.Resume)
	f.flag(&p.Aborted)
	f.flag(&p.Batchable)
}

func (p *Disposition) visit(f *fields) {
	f.role(&p.Role)
	f.must(&p.First)
	f.opt(&p.Last)
	f.flag(&p.Settled)
	visitPart(f, &p.State)
	f.flag(&p.Batchable)
}

func (p *Detach) visit(f *fields) {
	f.must(&p.Handle)
	f.flag(&p.Closed)
	visitPart(f, &p.Error)
}

func (p *Ending) visit(f *fields) { visitPart(f, &p.Error) }

func (p *SASLMechanisms) visit(f *fields) {
	v := any(p.Mechanisms)
	f.values(&v)
	p.Mechanisms, _ = v.(Array)
	p.Mechanisms = slices.DeleteFunc(p.Mechanisms, func(name any) bool { _, is := name.(Symbol); return !is })
}

func (p *SASLInit) visit(f *fields) {
	f.symbol(&p.Mechanism)
	f.binary(&p.Response)
	f.text(&p.Hostname)
}

func (p *SASLOutcome) visit(f *fields) { f.ubyte(&p.Code, 255) }

func (p *Error) visit(f *fields) {
	f.symbol(&p.Condition)
	f.text(&p.Description)
	f.values(&p.Info)
}

func (p *Source) visit(f *fields) {
	f.values(&p.Address)
	f.uint(&p.Durable, 0)
	f.symbol(&p.ExpiryPolicy)
	f.uint(&p.Timeout, 0)
	f.flag(&p.Dynamic)
	f.values(&p.DynamicProperties)
	f.symbol(&p.DistributionMode)
	f.values(&p.Filter, &p.DefaultOutcome, &p.Outcomes, &p.Capability)
}

func (p *Target) visit(f *fields) {
	if p.Coordinator {
		return
	}
	f.values(&p.Address)
	f.uint(&p.Durable, 0)
	f.symbol(&p.ExpiryPolicy)
	f.uint(&p.Timeout, 0)
	f.flag(&p.Dynamic)
	f.values(&p.DynamicProperties, &p.Capability)
}

func (p *State) visit(f *fields) {
	switch p.Kind {
	case StateRejected:
		visitPart(f, &p.Error)
	case StateModified:
		f.flag(&p.DeliveryFailed)
		f.flag(&p.UndeliverableHere)
		f.values(&p.Annotations)
	}
}

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
	if len(b) < 3 || b[1] != codeSmallUlng || b[2] != codeTransfer {
		return nil, false, nil
	}
	_, list, payload, err := cutDescribed(b)
	if err != nil {
		return nil, true, err
	}
	f, err := openList(list)
	if err != nil {
		return nil, true, err
	}
	*t = Transfer{}
	t.visit(&f)
	return payload, true, f.err
}

// ParsePerformative parses the content of a frame. payload is what follows the performative.
func ParsePerformative(b []byte) (p Performative, payload []byte, err error) {
	code, list, payload, err := cutDescribed(b)
	if err != nil {
		return nil, nil, err
	}
	if p = newPerformative(code); p == nil {
		return nil, nil, ErrMalformed
	}
	return p, payload, read(p, list)
}

// codeOf returns the descriptor of a performative, of a section, or of what they contain.
func codeOf(p Performative) uint64 {
	switch p := p.(type) {
	case *Open:
		return codeOpen
	case *Begin:
		return codeBegin
	case *Attach:
		return codeAttach
	case *Flow:
		return codeFlow
	case *Transfer:
		return codeTransfer
	case *Disposition:
		return codeDisposition
	case *Detach:
		return codeDetach
	case *End:
		return codeEnd
	case *Close:
		return codeClose
	case *SASLMechanisms:
		return codeSASLMechanisms
	case *SASLInit:
		return codeSASLInit
	case *SASLOutcome:
		return codeSASLOutcome
	case *Error:
		return codeError
	case *Source:
		return codeSource
	case *Target:
		return codeTarget
	case *State:
		return p.Kind
	case *Header:
		return SectionHeader
	}
	return SectionProperties
}

func newPerformative(code uint64) Performative {
	switch code {
	case codeOpen:
		return &Open{}
	case codeBegin:
		return &Begin{}
	case codeAttach:
		return &Attach{}
	case codeFlow:
		return &Flow{}
	case codeTransfer:
		return &Transfer{}
	case codeDisposition:
		return &Disposition{}
	case codeDetach:
		return &Detach{}
	case codeEnd:
		return &End{}
	case codeClose:
		return &Close{}
	case codeSASLMechanisms:
		return &SASLMechanisms{}
	case codeSASLInit:
		return &SASLInit{}
	case codeSASLOutcome:
		return &SASLOutcome{}
	}
	return nil
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
	if len(b) < 3 || b[1] != codeSmallUlng || b[2] != codeDisposition {
		return false, nil
	}
	_, list, _, err := cutDescribed(b)
	if err != nil {
		return true, err
	}
	f, err := openList(list)
	if err != nil {
		return true, err
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

// must is a uint that is always written.
func (f *fields) must(v *uint32) {
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
