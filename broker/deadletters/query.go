package deadletters

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker/queue"
)

// Query is a filter as people write it: in the address of a page, in the flags of a command, and in a saved filter. It can say "within the
// last two hours", where a Filter has an instant.
type Query url.Values

// QueryFields are the names in a Query. Those of header, property, json and seq may have several values.
var QueryFields = []string{"reason", "died_in", "exchange", "key", "message_id", "run", "since", "before", "header", "property", "json", "body", "pattern", "seq", "queue_id"}

// QueryOf reads the fields of a filter from a form. Fields without a value are left out.
func QueryOf(form url.Values) Query {
	q := Query{}
	for _, field := range QueryFields {
		for _, value := range form[field] {
			if value != "" {
				q[field] = append(q[field], value)
			}
		}
	}
	return q
}

// ParseQuery reads what String wrote. The error is about the text; Filter checks what the fields mean.
func ParseQuery(text string) (Query, error) {
	values, err := url.ParseQuery(text)
	if err != nil {
		return nil, err
	}
	for field := range values {
		if !slices.Contains(QueryFields, field) {
			return nil, fmt.Errorf("unknown filter field %q: want one of %s", field, strings.Join(QueryFields, ", "))
		}
	}
	return QueryOf(values), nil
}

// String returns the query in the form of a URL.
func (q Query) String() string { return url.Values(q).Encode() }

// Get returns the first value of a field, or "".
func (q Query) Get(field string) string { return url.Values(q).Get(field) }

// fieldOf has the field of a Query for a field of a Filter.
var fieldOf = map[string]string{
	"reason": "reason", "queue": "died_in", "headers": "header", "properties": "property", "json": "json", "pattern": "pattern",
}

// Filter returns what the query means at an instant. wrong has what is wrong, by field; the filter may be used only if it is empty.
func (q Query) Filter(now time.Time) (f Filter, wrong map[string]error) {
	wrong = map[string]error{}
	f = Filter{
		Reason: q.Get("reason"), Queue: q.Get("died_in"), Exchange: q.Get("exchange"), Key: q.Get("key"), MessageID: q.Get("message_id"),
		ReplayID: q.Get("run"), Body: q.Get("body"), Pattern: q.Get("pattern"),
	}
	note := func(field string, err error) {
		if err != nil {
			wrong[field] = err
		}
	}
	var err error
	f.Since, err = ParseInstant(q.Get("since"), now)
	note("since", err)
	f.Before, err = ParseInstant(q.Get("before"), now)
	note("before", err)
	if wrong["before"] == nil && !f.Before.IsZero() && !f.Since.Before(f.Before) {
		note("before", errors.New("it must be later than since"))
	}
	f.Headers, err = conditions(q["header"], "tenant=globex")
	note("header", err)
	f.Properties, err = conditions(q["property"], "type=order.created")
	note("property", err)
	f.Properties = hyphenated(f.Properties)
	f.JSON, err = conditions(q["json"], "customer.id=7")
	note("json", err)
	for _, text := range q["seq"] {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			note("seq", fmt.Errorf("%q is not the number of a message", text))
		}
		f.Seqs = append(f.Seqs, queue.Seq(n))
	}
	if text := q.Get("queue_id"); text != "" {
		if f.QueueID, err = strconv.ParseUint(text, 10, 64); err != nil {
			note("queue_id", fmt.Errorf("%q is not the number of a queue", text))
		}
	}
	if e, ok := errors.AsType[*FilterError](f.Check()); ok && wrong[fieldOf[e.Field]] == nil {
		note(fieldOf[e.Field], e)
	}
	return f, wrong
}

// conditions reads texts such as name=value.
func conditions(texts []string, example string) (map[string]string, error) {
	var list map[string]string
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return list, fmt.Errorf("want a name and a value such as %s, not %q", example, text)
		}
		if list == nil {
			list = map[string]string{}
		}
		list[name] = value
	}
	return list, nil
}

// hyphenated replaces the names that RabbitMQ's API uses for properties, such as message_id, by AMQP's.
func hyphenated(properties map[string]string) map[string]string {
	for name, value := range properties {
		if other := strings.ReplaceAll(strings.ToLower(name), "_", "-"); other != name {
			delete(properties, name)
			properties[other] = value
		}
	}
	return properties
}

// ParseInstant reads an instant in the form of RFC 3339, a date alone or a date with hours and minutes, in UTC unless it names a zone; or how
// long ago the instant was, such as 2h. "" is the zero time.
func ParseInstant(text string, now time.Time) (time.Time, error) {
	if text = strings.TrimSpace(text); text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("want an instant such as 2006-01-02T15:04:05Z or a duration such as 2h, not %q", text)
}
