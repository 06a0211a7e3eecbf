package deadletters

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// line is a message as a line of an exported file. It is complete, and a person can read and
// change it.
type line struct {
	VHost      string      `json:"vhost,omitempty"` // where it was exported from
	Queue      string      `json:"queue,omitempty"`
	Seq        queue.Seq   `json:"seq,omitempty"`
	Exchange   shortText   `json:"exchange"`
	RoutingKey shortText   `json:"routing_key"`
	Properties propertyMap `json:"properties"`
	Payload    []byte      `json:"payload"` // base64
}

// propertyMap is the properties of a message in JSON, only those that it has. "headers" has their types (typed); if a name is not UTF-8,
// "headers_raw" is the table in base64 instead.
type propertyMap struct{ amqp.Properties }

// MarshalJSON implements json.Marshaler.
func (m propertyMap) MarshalJSON() ([]byte, error) {
	o := map[string]any{}
	for _, one := range amqp.NamedProperties {
		if m.Has&one.Flag == 0 {
			continue
		}
		o[one.Name] = one.Of(&m.Properties)
		if text, is := o[one.Name].(*string); is {
			o[one.Name] = shortText(*text)
		}
	}
	if m.Has&amqp.HasHeaders != 0 {
		if headers, ok := typedTable(m.Headers); ok {
			o["headers"] = headers
		} else {
			o["headers_raw"] = amqp.AppendTable(nil, m.Headers)
		}
	}
	return policy.FormatJSON(o, "")
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *propertyMap) UnmarshalJSON(b []byte) error {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	for name, raw := range o {
		if err := m.read(name, raw); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (m *propertyMap) read(name string, raw []byte) (err error) {
	i := slices.IndexFunc(amqp.NamedProperties, func(p amqp.NamedProperty) bool { return p.Name == name })
	switch {
	case i >= 0:
		m.Has |= amqp.NamedProperties[i].Flag
		to := amqp.NamedProperties[i].Of(&m.Properties)
		text, isText := to.(*string)
		if !isText {
			return json.Unmarshal(raw, to)
		}
		if err = json.Unmarshal(raw, (*shortText)(text)); err == nil && len(*text) > 255 {
			err = errors.New("it is longer than 255 bytes")
		}
	case name == "headers":
		m.Has |= amqp.HasHeaders
		var headers map[string]typed
		if err = json.Unmarshal(raw, &headers); err == nil {
			m.Headers, err = plainTable(headers)
		}
	case name == "headers_raw":
		m.Has |= amqp.HasHeaders
		var table []byte
		if err = json.Unmarshal(raw, &table); err == nil {
			m.Headers, _, err = amqp.ParseTable(table, amqp.Limits{})
		}
	default:
		err = errors.New("there is no such property")
	}
	return err
}

// shortText is a string, or {"base64": "..."} if it is not UTF-8.
type shortText string

func (t shortText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return policy.FormatJSON(string(t), "")
	}
	return json.Marshal(map[string][]byte{"base64": []byte(t)})
}

func (t *shortText) UnmarshalJSON(b []byte) error {
	var plain string
	if json.Unmarshal(b, &plain) == nil {
		*t = shortText(plain)
		return nil
	}
	var coded struct {
		Base64 []byte `json:"base64"`
	}
	err := json.Unmarshal(b, &coded)
	*t = shortText(coded.Base64)
	return err
}

// Export writes the ready messages of q that f matches and upTo includes, a JSON object a line. They stay in the queue. begin returns where to
// write: it is called once, before the first line or, if there is none, at the end; not if the error comes before.
func Export(ctx context.Context, q *broker.Queue, f Filter, upTo Position, begin func() io.Writer) error {
	m, err := upTo.on(q, f)
	if err != nil {
		return err
	}
	var encoder *json.Encoder
	var failed error
	err = walk(ctx, q, Look{BodyBytes: -1, Position: upTo}, m, func(l *Letter) bool {
		if encoder == nil {
			encoder = json.NewEncoder(begin())
			encoder.SetEscapeHTML(false)
		}
		failed = encoder.Encode(line{
			VHost: q.VHost().Name(), Queue: q.Name, Seq: l.Seq, Exchange: shortText(l.Message.Exchange), RoutingKey: shortText(l.Message.RoutingKey),
			Properties: propertyMap{l.Properties}, Payload: l.Message.Body,
		})
		return failed == nil
	}, nil)
	if err == nil && encoder == nil {
		begin()
	}
	return errors.Join(err, failed)
}

// ImportError has the line of a file at which an import ended. The lines before it are in the queue: these are Imported messages.
type ImportError struct {
	Line, Imported int
	Err            error
}

func (e *ImportError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *ImportError) Unwrap() error { return e.Err }

// ErrBlocked ends an import when publishers are blocked. An import does not wait: its sender
// might give up, and the import would continue later.
var ErrBlocked = errors.New("publishers are blocked")

// maxLine bounds a line of a file: the largest possible body, in base64, with its properties.
const maxLine = 192 << 20

// Import publishes the messages of an exported file into the queue named to through the
// default exchange. They are as safe as the store makes them once a Commit that follows has called back. Their death headers stay as they are,
// but they now count as set by a publisher: the next death begins a new history. The error is an
// *ImportError, which may wrap ErrBlocked, or an error of the disk. progress is told how many were published so far.
func Import(ctx context.Context, b *broker.Broker, p *broker.Publisher, to string, r io.Reader, progress func(published int)) (n int, err error) {
	p.ForTool = true // to may be a dead-letter sub-queue
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	number := 0
	for lines.Scan() {
		number++
		if err := ctx.Err(); err != nil {
			return n, err
		}
		if reason, _ := b.Alarm.Reason(); reason != "" {
			return n, &ImportError{number, n, fmt.Errorf("%w: %s", ErrBlocked, reason)}
		}
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := importLine(p, to, lines.Bytes()); err != nil {
			p.Discard()
			return n, &ImportError{number, n, err}
		}
		n++
		progress(n)
	}
	if err := lines.Err(); err != nil {
		return n, &ImportError{number + 1, n, err}
	}
	return n, nil
}

func importLine(p *broker.Publisher, to string, text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return err
	}
	delete(l.Properties.Headers, "CC") // the message goes to this queue only
	delete(l.Properties.Headers, "BCC")
	routed, err := p.Add(&broker.Publication{RoutingKey: []byte(to), Properties: l.Properties.Append(nil), Body: l.Payload})
	if err == nil && !routed {
		err = fmt.Errorf("queue %q does not exist", to)
	}
	if err == nil && len(p.Flush(nil)) > 0 {
		err = fmt.Errorf("queue %q is full", to)
	}
	return err
}
