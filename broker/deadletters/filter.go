package deadletters

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/queue"
)

// Filter chooses dead letters. All conditions that are set must hold; an empty filter matches all messages. Any of the deaths may
// match, but reason, queue, exchange and routing key must match the same one. Conditions on the body apply to the unpacked body, if
// it has a content-encoding.
type Filter struct {
	// Seqs are the numbers of messages in the queue.
	Seqs []queue.Seq `json:"seqs,omitempty"`
	// QueueID is the incarnation of the queue that the numbers belong to; 0: any.
	QueueID    uint64            `json:"queue_id,omitempty,string"`
	Reason     string            `json:"reason,omitempty"`      // for which it died: expired, rejected, maxlen or delivery_limit
	Queue      string            `json:"queue,omitempty"`       // in which it died
	Exchange   string            `json:"exchange,omitempty"`    // to which it was published then
	Key        string            `json:"routing_key,omitempty"` // with which it was published then
	Headers    map[string]string `json:"headers,omitempty"`     // value as text
	Properties map[string]string `json:"properties,omitempty"`  // by AMQP's names, such as "correlation-id"; value as text
	MessageID  string            `json:"message_id,omitempty"`
	ReplayID   string            `json:"run,omitempty"`   // ID of the replay that replayed it last
	Since      time.Time         `json:"since,omitzero"`  // its last death was then or later
	Before     time.Time         `json:"before,omitzero"` // its last death was before then
	Body       string            `json:"body,omitempty"`  // a part of it, as it stands or as JSON escapes it
	// Pattern is an RE2 expression that must match somewhere in the body, as bytes.
	Pattern string `json:"pattern,omitempty"`
	// JSON is values as text, by their paths in the body, such as "customer.id".
	JSON map[string]string `json:"json,omitempty"`
}

// FilterError says which part of a filter is wrong. Field is its name in JSON.
type FilterError struct {
	Field string
	Err   error
}

func (e *FilterError) Error() string { return e.Err.Error() }
func (e *FilterError) Unwrap() error { return e.Err }

func wrong(field, format string, args ...any) error {
	return &FilterError{field, fmt.Errorf(format, args...)}
}

const (
	// maxPattern is how long a pattern may be, in bytes. With RE2 the time is proportional to
	// the length of the body, whatever the pattern is.
	maxPattern = 1000
	// maxConditions is how many headers, properties or JSON values a filter may name.
	maxConditions = 50
	// maxFiltered is how much of a compressed body filters unpack, in bytes.
	maxFiltered = 4 << 20
)

// matcher is a compiled filter.
type matcher struct {
	Filter
	seqs    []queue.Seq // in the order of delivery
	bodies  [][]byte    // one of them must be in the body
	pattern *regexp.Regexp
	json    []jsonValue
}

// Reasons are the reasons that RabbitMQ writes into x-death.
var Reasons = []string{"expired", "rejected", "maxlen", "delivery_limit"}

// Check reports what is wrong with the filter. The error is a *FilterError.
func (f *Filter) Check() error {
	_, err := f.compile()
	return err
}

// compile checks the filter, as Check does.
func (f *Filter) compile() (*matcher, error) {
	if f.Reason != "" && !slices.Contains(Reasons, f.Reason) {
		return nil, wrong("reason", "unknown dead-letter reason %q: want one of %s", f.Reason, strings.Join(Reasons, ", "))
	}
	m := &matcher{Filter: *f, bodies: needles(f.Body)}
	m.seqs = inOrder(f.Seqs)
	for field, n := range map[string]int{"headers": len(f.Headers), "properties": len(f.Properties), "json": len(f.JSON)} {
		if n > maxConditions {
			return nil, wrong(field, "there are %d conditions, more than %d", n, maxConditions)
		}
	}
	for name := range f.Properties {
		if !slices.Contains(propertyNames, name) {
			return nil, wrong("properties", "unknown property %q: want one of %s", name, strings.Join(propertyNames, ", "))
		}
	}
	if len(f.Pattern) > maxPattern {
		return nil, wrong("pattern", "the pattern has %d bytes, more than %d", len(f.Pattern), maxPattern)
	}
	if f.Pattern != "" {
		var err error
		if m.pattern, err = policy.Linear(f.Pattern); err != nil {
			return nil, wrong("pattern", "the pattern is not an RE2 expression: %w", err)
		}
	}
	for path, want := range f.JSON {
		v, err := parsePath(path, want)
		if err != nil {
			return nil, &FilterError{"json", err}
		}
		m.json = append(m.json, v)
	}
	return m, nil
}

// inOrder returns the numbers in the order of delivery, each once.
func inOrder(seqs []queue.Seq) []queue.Seq {
	sorted := slices.Clone(seqs)
	slices.SortFunc(sorted, delivered)
	return slices.Compact(sorted)
}

// delivered compares messages by the order of delivery: a higher priority comes first.
func delivered(a, b queue.Seq) int {
	if pa, pb := a.Priority(), b.Priority(); pa != pb {
		return int(pb) - int(pa)
	}
	if a < b {
		return -1
	}
	return int(min(a-b, 1))
}

// needles returns the forms in which a body may contain the text: as it is, or escaped as JSON
// that is limited to ASCII, as Python writes it.
func needles(text string) [][]byte {
	if text == "" {
		return nil
	}
	list := [][]byte{[]byte(text)}
	if !utf8.ValidString(text) || strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return list
	}
	for _, format := range []string{`\u%04x`, `\u%04X`} {
		var b []byte
		for _, r := range text {
			if r < utf8.RuneSelf {
				b = append(b, byte(r))
				continue
			}
			for _, unit := range utf16.Encode([]rune{r}) {
				b = fmt.Appendf(b, format, unit)
			}
		}
		list = append(list, b)
	}
	return list
}

// reads reports whether the filter needs the whole body.
func (m *matcher) reads() bool { return len(m.bodies) > 0 || m.pattern != nil || len(m.json) > 0 }

// matches needs the whole body if reads returns true.
func (m *matcher) matches(l *Letter) bool {
	return (m.MessageID == "" || l.Properties.MessageID == m.MessageID) &&
		(m.ReplayID == "" || l.ReplayID == m.ReplayID) &&
		m.died(l) && m.inTime(l) && m.hasHeaders(l.Properties.Headers) && m.hasProperties(&l.Properties) &&
		(!m.reads() || m.inBody(l))
}

func (m *matcher) inBody(l *Letter) bool {
	body, _, err := Unpack(l.Properties.ContentEncoding, l.Body, maxFiltered)
	if err != nil && len(body) == 0 {
		body = l.Body
	}
	return m.contains(body) && (m.pattern == nil || m.pattern.Match(body)) && m.hasValues(body)
}

func (m *matcher) contains(body []byte) bool {
	for _, one := range m.bodies {
		if bytes.Contains(body, one) {
			return true
		}
	}
	return len(m.bodies) == 0
}

func (m *matcher) hasValues(body []byte) bool {
	for i := range m.json {
		if !m.json[i].in(body) {
			return false
		}
	}
	return true
}

func (m *matcher) died(l *Letter) bool {
	if m.Reason == "" && m.Queue == "" && m.Exchange == "" && m.Key == "" {
		return true
	}
	for _, d := range l.Deaths {
		if (m.Reason == "" || d.Reason == m.Reason) && (m.Queue == "" || d.Queue == m.Queue) && (m.Exchange == "" || d.Exchange == m.Exchange) &&
			(m.Key == "" || slices.Contains(d.Keys, m.Key)) {
			return true
		}
	}
	return false
}

func (m *matcher) inTime(l *Letter) bool {
	if m.Since.IsZero() && m.Before.IsZero() {
		return true
	}
	d, ok := l.last()
	return ok && !d.Time.Before(m.Since) && (m.Before.IsZero() || d.Time.Before(m.Before))
}

func (m *matcher) hasHeaders(h amqp.Table) bool {
	for name, want := range m.Headers {
		if v, ok := h[name]; !ok || text(v) != want {
			return false
		}
	}
	return true
}

func (m *matcher) hasProperties(p *amqp.Properties) bool {
	for name, want := range m.Properties {
		if is, ok := propertyText(p, name); !ok || is != want {
			return false
		}
	}
	return true
}

// text returns a header's value as a person would type it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}
