package amqp10

// The descriptors of the sections of a message (AMQP 1.0 §3.2).
const (
	SectionHeader                = 0x70
	SectionDeliveryAnnotations   = 0x71
	SectionMessageAnnotations    = 0x72
	SectionProperties            = 0x73
	SectionApplicationProperties = 0x74
	SectionData                  = 0x75
	SectionSequence              = 0x76
	SectionValue                 = 0x77
	SectionFooter                = 0x78
)

// Message is a message as its sections. Each is the section's value, which aliases what was split; nil:
// there is none.
type Message struct {
	Header, DeliveryAnnotations, MessageAnnotations []byte
	Properties, ApplicationProperties               []byte
	Bare                                            []byte // properties, application properties, body and footer
	Body                                            []byte // the sections of the body and the footer
	Data                                            []byte // the content of a body of one data section; nil: it is another
	Footer                                          []byte // the section, if it is the last
}

// Split splits a message into its sections. They must be in the order of the specification, but for a
// footer in front of the body, where rhea writes it.
func Split(b []byte) (m Message, err error) {
	all, last, bodies, footed, ended := b, uint64(0), 0, false, false
	bare, body, footer := -1, -1, len(b)
	for len(b) > 0 {
		at := len(all) - len(b)
		code, value, rest, err := cutDescribed(b)
		if err != nil {
			return m, err
		}
		repeats := code == last && (code == SectionData || code == SectionSequence)
		if code < SectionHeader || code > SectionFooter || code <= last && !repeats || last >= SectionData && code != SectionFooter && !repeats ||
			ended || footed && (code < SectionData || code == SectionFooter) {
			return m, ErrMalformed
		}
		b = rest
		if code >= SectionProperties && bare < 0 {
			bare = at
		}
		if code >= SectionData && body < 0 {
			body = at
		}
		switch code {
		case SectionHeader:
			m.Header = value
		case SectionDeliveryAnnotations:
			m.DeliveryAnnotations = value
		case SectionMessageAnnotations:
			m.MessageAnnotations = value
		case SectionProperties:
			m.Properties = value
		case SectionApplicationProperties:
			m.ApplicationProperties = value
		case SectionFooter:
			if footed, ended = true, bodies > 0; len(b) == 0 {
				footer = at
			}
			continue
		default:
			bodies++
			if m.Data = nil; code != SectionData {
				break
			}
			data, _, err := cut(value[0], value[1:])
			if err != nil || value[0] != codeBinary8 && value[0] != codeBinary32 {
				return m, ErrMalformed
			}
			if bodies == 1 {
				m.Data = data
			}
		}
		last = code
	}
	if bare >= 0 {
		m.Bare = all[bare:]
	}
	if body >= 0 {
		m.Body = all[body:]
	}
	if footer < len(all) {
		m.Footer = all[footer:]
	}
	return m, nil
}

// AppendSection appends a section with a value of the types that Append takes.
func AppendSection(b []byte, section byte, value any) []byte {
	return Append(BeginSection(b, section), value)
}

// BeginSection appends the beginning of a section. Its value must follow.
func BeginSection(b []byte, section byte) []byte {
	return append(b, codeDescribed, codeSmallUlng, section)
}

// BeginData appends the beginning of a data section. n octets must follow.
func BeginData(b []byte, n int) []byte {
	return appendSized(BeginSection(b, SectionData), codeBinary8, n)
}

// Header is the first section of a message.
type Header struct {
	Durable       bool
	Priority      uint8 // 4 if absent
	TTL           OptUint
	FirstAcquirer bool
	DeliveryCount uint32
}

func (p *Header) visit(f *fields) {
	f.flag(&p.Durable)
	f.ubyte(&p.Priority, 4)
	f.opt(&p.TTL)
	f.flag(&p.FirstAcquirer)
	f.always(&p.DeliveryCount)
}

// Properties are the immutable properties of a message. The two ids are a string, a uint64, a UUID
// or []byte.
type Properties struct {
	MessageID                    any
	UserID                       []byte
	To, Subject, ReplyTo         any // strings
	CorrelationID                any
	ContentType, ContentEncoding string
	AbsoluteExpiry, CreationTime any // Timestamps
	GroupID                      any
	GroupSequence                OptUint
	ReplyToGroupID               any
}

func (p *Properties) visit(f *fields) {
	f.values(&p.MessageID)
	f.binary(&p.UserID)
	f.values(&p.To, &p.Subject, &p.ReplyTo, &p.CorrelationID)
	f.symbol(&p.ContentType)
	f.symbol(&p.ContentEncoding)
	f.values(&p.AbsoluteExpiry, &p.CreationTime, &p.GroupID)
	f.opt(&p.GroupSequence)
	f.values(&p.ReplyToGroupID)
}

// Append appends the section.
func (p *Header) Append(b []byte) []byte {
	f := beginList(b, SectionHeader)
	p.visit(&f)
	return f.finish()
}

// Read reads the section from its value; nil: all fields are absent.
func (p *Header) Read(value []byte) error {
	*p = Header{Priority: 4}
	if value == nil {
		return nil
	}
	f, err := openList(value)
	if err == nil {
		p.visit(&f)
		err = f.err
	}
	return err
}

// Append appends the section; nothing if all fields are absent.
func (p *Properties) Append(b []byte) []byte {
	f := beginList(b, SectionProperties)
	if p.visit(&f); f.kept == 0 {
		return b
	}
	return f.finish()
}

// Read reads the section from its value; nil: all fields are absent.
func (p *Properties) Read(value []byte) error {
	*p = Properties{}
	if value == nil {
		return nil
	}
	f, err := openList(value)
	if err == nil {
		p.visit(&f)
		err = f.err
	}
	return err
}
