package deadletters

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"curfew/broker"
	"curfew/broker/amqp"
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

// propertyMap holds the properties of a message.
type propertyMap struct {
	ContentType     *shortText        `json:"content_type,omitempty"`
	ContentEncoding *shortText        `json:"content_encoding,omitempty"`
	Headers         *map[string]typed `json:"headers,omitempty"`
	RawHeaders      []byte            `json:"headers_raw,omitempty"` // if a name is not UTF-8: the table in base64
	DeliveryMode    *uint8            `json:"delivery_mode,omitempty"`
	Priority        *uint8            `json:"priority,omitempty"`
	CorrelationID   *shortText        `json:"correlation_id,omitempty"`
	ReplyTo         *shortText        `json:"reply_to,omitempty"`
	Expiration      *shortText        `json:"expiration,omitempty"`
	MessageID       *shortText        `json:"message_id,omitempty"`
	Timestamp       *amqp.Timestamp   `json:"timestamp,omitempty"` // Unix seconds
	Type            *shortText        `json:"type,omitempty"`
	UserID          *shortText        `json:"user_id,omitempty"`
	AppID           *shortText        `json:"app_id,omitempty"`
	ClusterID       *shortText        `json:"cluster_id,omitempty"`
}

// shortText is a string, or {"base64": "..."} if it is not UTF-8.
type shortText string

func (t shortText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
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

// texts pairs the string properties of both forms.
func (m *propertyMap) texts(p *amqp.Properties) []struct {
	has   amqp.PropertySet
	plain *string
	out   **shortText
} {
	return []struct {
		has   amqp.PropertySet
		plain *string
		out   **shortText
	}{
		{amqp.HasContentType, &p.ContentType, &m.ContentType}, {amqp.HasContentEncoding, &p.ContentEncoding, &m.ContentEncoding},
		{amqp.HasCorrelationID, &p.CorrelationID, &m.CorrelationID}, {amqp.HasReplyTo, &p.ReplyTo, &m.ReplyTo},
		{amqp.HasExpiration, &p.Expiration, &m.Expiration}, {amqp.HasMessageID, &p.MessageID, &m.MessageID},
		{amqp.HasType, &p.Type, &m.Type}, {amqp.HasUserID, &p.UserID, &m.UserID},
		{amqp.HasAppID, &p.AppID, &m.AppID}, {amqp.HasClusterID, &p.ClusterID, &m.ClusterID},
	}
}

func propertyMapOf(p *amqp.Properties) (m propertyMap) {
	for _, t := range m.texts(p) {
		if p.Has&t.has != 0 {
			v := shortText(*t.plain)
			*t.out = &v
		}
	}
	if p.Has&amqp.HasDeliveryMode != 0 {
		m.DeliveryMode = &p.DeliveryMode
	}
	if p.Has&amqp.HasPriority != 0 {
		m.Priority = &p.Priority
	}
	if p.Has&amqp.HasTimestamp != 0 {
		m.Timestamp = &p.Timestamp
	}
	if p.Has&amqp.HasHeaders != 0 {
		if headers, ok := typedTable(p.Headers); ok {
			m.Headers = &headers
		} else {
			m.RawHeaders = amqp.AppendTable(nil, p.Headers)
		}
	}
	return m
}

func (m *propertyMap) properties() (p amqp.Properties, err error) {
	for _, t := range m.texts(&p) {
		if *t.out == nil {
			continue
		}
		if *t.plain = string(**t.out); len(*t.plain) > 255 {
			return p, errors.New("a property is longer than 255 bytes")
		}
		p.Has |= t.has
	}
	if m.DeliveryMode != nil {
		p.DeliveryMode, p.Has = *m.DeliveryMode, p.Has|amqp.HasDeliveryMode
	}
	if m.Priority != nil {
		p.Priority, p.Has = *m.Priority, p.Has|amqp.HasPriority
	}
	if m.Timestamp != nil {
		p.Timestamp, p.Has = *m.Timestamp, p.Has|amqp.HasTimestamp
	}
	switch {
	case m.Headers != nil:
		p.Has |= amqp.HasHeaders
		p.Headers, err = plainTable(*m.Headers)
	case m.RawHeaders != nil:
		p.Has |= amqp.HasHeaders
		p.Headers, _, err = amqp.ParseTable(m.RawHeaders, amqp.Limits{})
	}
	return p, err
}

// Export writes the ready messages of q that f matches and upTo includes to w, a JSON object a line, and returns how many. They stay in the
// queue.
func Export(ctx context.Context, q *broker.Queue, f Filter, upTo Position, w io.Writer) (n int, err error) {
	m, err := upTo.on(q, f)
	if err != nil {
		return 0, err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	var failed error
	err = walk(ctx, q, way{bodyBytes: -1, upTo: upTo}, m, func(l *Letter) bool {
		failed = encoder.Encode(line{
			VHost: q.VHost().Name(), Queue: q.Name(), Seq: l.Seq, Exchange: shortText(l.Exchange), RoutingKey: shortText(l.RoutingKey),
			Properties: propertyMapOf(&l.Properties), Payload: l.Body,
		})
		if failed == nil {
			n++
		}
		return failed == nil
	}, nil)
	return n, errors.Join(err, failed)
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
		if reason, _ := b.BlockedReason(); reason != "" {
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
	properties, err := l.Properties.properties()
	if err != nil {
		return err
	}
	delete(properties.Headers, "CC") // the message goes to this queue only
	delete(properties.Headers, "BCC")
	routed, err := p.Add(&broker.Publication{RoutingKey: []byte(to), Properties: properties.Append(nil), Body: l.Payload})
	if err == nil && !routed {
		err = fmt.Errorf("queue %q does not exist", to)
	}
	if err == nil && len(p.Flush(nil)) > 0 {
		err = fmt.Errorf("queue %q is full", to)
	}
	return err
}
