package deadletters

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Draft is what will be published in place of one dead letter. A person may read and change it. In JSON its body is a text (Payload); here it is Body.
type Draft struct {
	QueueID    uint64 `json:"queue_id,string" is:"text" doc:"of the queue that was read; absent: any queue of the name"`
	Exchange   string `json:"exchange" log:"exchange"`
	RoutingKey string `json:"routing_key" log:"routing_key"`
	// Properties are JSON, as Export writes them, except that all integers in the headers are plain. Those that are not changed keep
	// their types.
	Properties json.RawMessage `json:"properties" is:"object" doc:"as in an exported file"`
	Payload    string          `json:"payload"`
	Encoding   string          `json:"payload_encoding" doc:"string or base64"`
	Body       []byte          `json:"-"`
	// Unpacked: Body is text that was unpacked according to the property content-encoding. It is packed again before it is sent.
	Unpacked bool `json:"unpacked,omitempty" doc:"the payload is text without the content-encoding, and is packed again"`
}

// Stays is the error about a message that stays where it is.
type Stays struct{ Why SkipReason }

// Error implements error.
func (e *Stays) Error() string { return "the message stays where it is: " + string(e.Why) }

// maxPlain is the length of the longest text that is unpacked for a person, in bytes.
const maxPlain = 4 << 20

// ErrDraft is wrapped by errors about a draft that cannot be sent.
var ErrDraft = errors.New("the draft cannot be sent")

// DraftOf returns what a replay to the origin would publish of the ready message seq of q,
// with the time to live that it was first published with. A message that never died goes where
// it went before. False: the message is gone, or a consumer holds it.
func DraftOf(b *broker.Broker, q *broker.Queue, seq queue.Seq) (d Draft, ok bool, err error) {
	x, ok := q.Messages.BrowseOne(seq, -1)
	if !ok || x.State != queue.Ready {
		return d, false, nil
	}
	l, now := LetterOf(&x, nil), b.UnixMillis(b.Now())
	o := Options{To: ToOrigin, TTL: TTLFresh, MaxReplays: math.MaxInt64}
	m, skipped := o.rewrite(&l, "", now)
	if skipped != "" {
		o.To, o.Exchange, o.Key = ToExchange, string(l.Message.Exchange), string(l.Message.RoutingKey)
		m, _ = o.rewrite(&l, "", now)
	}
	p, err := broker.ParseStored(m.Properties)
	if err != nil {
		return d, true, err
	}
	delete(p.Headers, replayHeader) // it is not part of a replay
	p.Headers = plainNumbers(p.Headers)
	d = Draft{QueueID: q.ID, Exchange: string(m.Exchange), RoutingKey: string(m.RoutingKey), Body: m.Body}
	if plain, ok := plainText(p.ContentEncoding, m.Body); ok {
		d.Body, d.Unpacked = plain, true
	}
	d.Properties, err = policy.FormatJSON(propertyMap{p}, "  ")
	return d, true, err
}

// plainText returns the text in a packed body. False: it is not packed, too long, or not text.
func plainText(encoding string, body []byte) (plain []byte, ok bool) {
	if !IsPacked(encoding) {
		return nil, false
	}
	plain, more, err := Unpack(encoding, body, maxPlain)
	return plain, err == nil && !more && utf8.Valid(plain)
}

// Review is what a person should know about a changed draft before it is sent.
type Review struct {
	Diff string `json:"diff"` // from the unchanged draft, unified; empty: nothing has changed
	// NotJSON is the place where the body is not valid JSON although the dead letter's body is, or although the content type says JSON; absent: nothing is wrong.
	NotJSON string     `json:"not_json,omitempty"`
	Skipped SkipReason `json:"skipped,omitempty"` // why the message would stay; absent: it would be sent
	Targets []Target   `json:"targets"`           // where the message would go
}

// ReviewOf returns what Resend would do with d, and changes nothing. Errors are those of Resend. False: the message is gone, or a consumer holds it.
func ReviewOf(b *broker.Broker, p *broker.Publisher, q *broker.Queue, seq queue.Seq, d *Draft) (r Review, ok bool, err error) {
	old, ok, err := DraftOf(b, q, seq)
	if err != nil || !ok {
		return r, ok, err
	}
	x, ok := d.look(q, seq)
	if !ok {
		return r, false, nil
	}
	m, properties, err := d.publication(&x)
	if err != nil {
		return r, true, err
	}
	if r.Diff, err = diff(&old, d); err != nil {
		return r, true, err
	}
	if json.Valid(old.Body) || strings.Contains(strings.ToLower(properties.ContentType), "json") && (d.Unpacked || !IsPacked(properties.ContentEncoding)) {
		r.NotJSON = notJSON(d.Body)
	}
	outcome, to, err := p.CanMove(q.Messages.Ref(&x), m, nil)
	if err != nil {
		return r, true, err
	}
	found := targets{}
	found.add(to)
	r.Skipped, r.Targets = skipReasons[outcome], found.list(b, q)
	return r, true, nil
}

// notJSON returns the place where a body is not valid JSON; "": it is valid.
func notJSON(body []byte) string {
	var any json.RawMessage
	err := json.Unmarshal(body, &any)
	if err == nil {
		return ""
	}
	at := len(body)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = min(max(int(syntax.Offset)-1, 0), len(body))
	}
	before := body[:at]
	line, start := bytes.Count(before, []byte("\n"))+1, bytes.LastIndexByte(before, '\n')+1
	return fmt.Sprintf("line %d, column %d: %v", line, utf8.RuneCount(before[start:])+1, err)
}

// diff compares two drafts line by line.
func diff(old, changed *Draft) (string, error) {
	from, to := old.lines(), changed.lines()
	edits := udiff.Lines(from, to)
	if len(edits) == 0 {
		return "", nil
	}
	return udiff.ToUnified("dead letter", "changed", from, edits, udiff.DefaultContextLines)
}

// lines returns the draft as text to compare, with JSON on many lines.
func (d *Draft) lines() string {
	body := string(d.Body)
	if pretty, ok := Indent(d.Body); ok {
		body = string(pretty)
	} else if !utf8.Valid(d.Body) {
		body = fmt.Sprintf("(%d bytes that are not text: %x)", len(d.Body), d.Body[:min(len(d.Body), 64)])
	}
	properties := d.Properties
	if pretty, ok := Indent(properties); ok {
		properties = pretty
	}
	return fmt.Sprintf("exchange: %s\nrouting key: %s\nproperties: %s\n\n%s\n", d.Exchange, d.RoutingKey, properties, body)
}

// maxIndented is how long indented JSON may become, in bytes.
const maxIndented = 4 << 20

// Indent returns a JSON body, indented on many lines. False: it is not JSON, or would become too long.
func Indent(body []byte) (pretty []byte, ok bool) {
	if len(body) == 0 || len(body) > maxIndented || indented(body) > maxIndented || !json.Valid(body) {
		return nil, false
	}
	var b bytes.Buffer
	err := json.Indent(&b, bytes.TrimSpace(body), "", "  ")
	return b.Bytes(), err == nil
}

// indented returns an upper bound for the length of an indented body: each comma and bracket outside of strings begins a line.
func indented(body []byte) int {
	n, depth, quoted := len(body), 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			n += 2*depth + 1
		case c == '}' || c == ']':
			depth = max(depth-1, 0)
			n += 2*depth + 1
		case c == ',':
			n += 2*depth + 1
		}
	}
	return n
}

// Resend publishes d and takes the message seq out of q in one step (broker: Publisher.Move). The change
// is as safe as the store makes it once a Commit that follows has called back. If skipped is not empty, or for an error, the message
// stays as it is. Errors are about the draft, the rights of p, or blocked publishers.
func Resend(b *broker.Broker, p *broker.Publisher, q *broker.Queue, seq queue.Seq, d *Draft) (skipped SkipReason, err error) {
	x, ok := d.look(q, seq)
	m, _, err := d.publication(&x)
	if err != nil {
		return "", err
	}
	if reason, _ := b.Alarm.Reason(); reason != "" {
		return "", fmt.Errorf("%w: %s", ErrBlocked, reason)
	}
	if !ok {
		return SkippedGone, nil
	}
	outcome, err := p.Move(q.Messages.Ref(&x), m, false)
	return skipReasons[outcome], err
}

// look returns the message of the draft. Its body, which may be long, is copied only to see how it was packed.
func (d *Draft) look(q *broker.Queue, seq queue.Seq) (broker.Browsed, bool) {
	bodyBytes := 0
	if d.Unpacked {
		bodyBytes = -1
	}
	return q.Messages.BrowseOne(seq, bodyBytes)
}

// publication returns the message that the draft of x becomes.
func (d *Draft) publication(x *broker.Browsed) (*broker.Publication, *amqp.Properties, error) {
	var p propertyMap
	if err := json.Unmarshal(d.Properties, &p); err != nil {
		return nil, nil, fmt.Errorf("%w: its properties cannot be read: %w", ErrDraft, err)
	}
	if len(d.Exchange) > 255 || len(d.RoutingKey) > 255 {
		return nil, nil, fmt.Errorf("%w: the exchange or the routing key is longer than 255 bytes", ErrDraft)
	}
	body := d.Body
	was, err := x.Decode()
	if err == nil {
		withTypes(p.Headers, was.Headers)
	}
	if d.Unpacked && IsPacked(p.ContentEncoding) {
		var old []byte
		if was.ContentEncoding == p.ContentEncoding {
			old = x.Message.Body
		}
		if plain, ok := plainText(p.ContentEncoding, old); ok && bytes.Equal(plain, d.Body) {
			body = old // the original octets, not another packing of the same text
		} else if body, err = Pack(p.ContentEncoding, d.Body, old); err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrDraft, err)
		}
	}
	return &broker.Publication{Exchange: []byte(d.Exchange), RoutingKey: []byte(d.RoutingKey), Properties: p.Append(nil), Body: body}, &p.Properties, nil
}
