package deadletters

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/pattern"
	"curfew/broker/queue"
)

// Filter chooses dead letters; all that is set has to hold, the zero Filter matches
// all. Of the deaths any may match, but for Reason, Queue and Exchange one and the same.
type Filter struct {
	Seqs      []queue.Seq       `json:"seqs,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Queue     string            `json:"queue,omitempty"`    // in which it died
	Exchange  string            `json:"exchange,omitempty"` // to which it was published then
	Headers   map[string]string `json:"headers,omitempty"`  // value as text
	MessageID string            `json:"message_id,omitempty"`
	Run       string            `json:"run,omitempty"` // that replayed it last
	// Since and Before bound the time of the last death: Since <= time < Before.
	Since  time.Time `json:"since,omitzero"`
	Before time.Time `json:"before,omitzero"`
	Body   string    `json:"body,omitempty"` // a part of it
	// Pattern is an RE2 expression that the body, as bytes, has to match somewhere.
	Pattern string `json:"pattern,omitempty"`
}

// MaxPattern is how long a pattern may be, in bytes. RE2 takes time in proportion to
// the body, whatever the pattern.
const MaxPattern = 1000

// matcher is a filter made ready.
type matcher struct {
	Filter
	seqs    map[queue.Seq]bool
	body    []byte
	pattern *regexp.Regexp
}

// reasons are what RabbitMQ writes into x-death.
var reasons = []string{"expired", "rejected", "maxlen", "delivery_limit"}

// Check says what is wrong with the filter: its reason or its pattern.
func (f *Filter) Check() error {
	_, err := f.compile()
	return err
}

// compile checks the filter, as Check does.
func (f *Filter) compile() (*matcher, error) {
	if f.Reason != "" && !slices.Contains(reasons, f.Reason) {
		return nil, fmt.Errorf("nothing dies of the reason %q; there are %s", f.Reason, strings.Join(reasons, ", "))
	}
	m := &matcher{Filter: *f, body: []byte(f.Body)}
	if f.Seqs != nil {
		m.seqs = map[queue.Seq]bool{}
	}
	for _, s := range f.Seqs {
		m.seqs[s] = true
	}
	if len(f.Pattern) > MaxPattern {
		return nil, fmt.Errorf("the pattern has %d bytes; at most %d are allowed", len(f.Pattern), MaxPattern)
	}
	if f.Pattern != "" {
		var err error
		if m.pattern, err = pattern.Linear(f.Pattern); err != nil {
			return nil, fmt.Errorf("the pattern is no RE2 expression: %w", err)
		}
	}
	return m, nil
}

// reads reports whether the whole body is looked at.
func (m *matcher) reads() bool { return len(m.body) > 0 || m.pattern != nil }

// matches wants the whole body if reads says so.
func (m *matcher) matches(l *Letter) bool {
	return (m.seqs == nil || m.seqs[l.Seq]) &&
		(m.MessageID == "" || l.Properties.MessageID == m.MessageID) &&
		(m.Run == "" || l.Run == m.Run) &&
		m.died(l) && m.inTime(l) && m.hasHeaders(l.Properties.Headers) &&
		bytes.Contains(l.Body, m.body) &&
		(m.pattern == nil || m.pattern.Match(l.Body))
}

func (m *matcher) died(l *Letter) bool {
	if m.Reason == "" && m.Queue == "" && m.Exchange == "" {
		return true
	}
	for _, d := range l.Deaths {
		if (m.Reason == "" || d.Reason == m.Reason) && (m.Queue == "" || d.Queue == m.Queue) && (m.Exchange == "" || d.Exchange == m.Exchange) {
			return true
		}
	}
	return false
}

func (m *matcher) inTime(l *Letter) bool {
	if m.Since.IsZero() && m.Before.IsZero() {
		return true
	}
	d, ok := l.Last()
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

// text is a header's value as a person would type it.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}
