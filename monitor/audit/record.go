package audit

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"curfew/broker/deadline"
)

// What Path, Outcome and Reason of a Record can be.
var (
	Paths    = []string{"eager", "index", "lazy", "requeue", "manual", "scheduled"}
	Outcomes = []string{"dead_lettered", "dropped", "parked"}
	Reasons  = []string{Expired, "rejected", "maxlen", "delivery_limit", Changed}
)

const (
	// Expired is the Reason of a message that expired.
	Expired = "expired"
	// Changed is the Reason of what a user did.
	Changed = "changed"
)

// Record is one message that expired or died for another reason, what a user did, or with Lost a gap.
type Record struct {
	At         int64 // Unix ms: when it had arrived, or was dropped
	Deadline   int64 // Unix ms
	LateMillis int64 // how long after the deadline that was, rounded up; at least 0
	VHost      string
	Queue      string
	MessageID  []byte   // the property; may be empty
	Path       string   // how the expiry came about; one of Paths
	Outcome    string   // one of Outcomes
	Exchange   string   // the dead-letter exchange it went to
	RoutingKey []byte   // with this key
	To         []string // into these queues
	Reason     string   // one of Reasons; "" is Expired
	Change     *Change  // of what a user did; VHost and Queue say where
	Lost       int64    // the number of records before this instant that could not be kept; then this is a gap, not a message
}

// Change is what a user did, or tried to do.
type Change struct {
	Operation string // as in broker/operate, such as "purge_queue"
	User      string
	Face      string // what the user used: the management API, the dashboard or the command line
	Result    string // "done", "refused" or "failed"
	Detail    string // in words, such as how many messages
}

// recordOf is the record of an expiry, by the wall clock.
func recordOf(e *deadline.Expiry) Record {
	due, arrived := e.Wall()
	return Record{
		At: arrived.UnixMilli(), Deadline: due.UnixMilli(), LateMillis: int64(deadline.RoundUp(e.Lateness())), VHost: e.VHost, Queue: e.Queue,
		MessageID: e.MessageID, Path: e.Path.String(), Outcome: e.Action.String(), Exchange: e.Exchange, RoutingKey: e.RoutingKey, To: e.To,
	}
}

// deathOf is the record of a dead letter that did not expire.
func deathOf(e *deadline.Expiry) Record {
	r := recordOf(e)
	r.Deadline, r.LateMillis, r.Path, r.Reason = 0, 0, "", e.Reason
	return r
}

// Died is why the message died, Changed for what a user did.
func (r *Record) Died() string { return cmp.Or(r.Reason, Expired) }

// Held reports whether a consumer held the message past its deadline.
func (r *Record) Held() bool { return r.Path == deadline.Requeued.String() }

// Lateness is how long after its deadline the message had arrived, or was dropped, in whole ms.
func (r *Record) Lateness() time.Duration { return deadline.Millis(r.LateMillis).Duration() }

// Line is a Record in JSON.
type Line struct {
	At         instant  `json:"at"` // when the message had arrived where it went, or was dropped
	VHost      string   `json:"vhost,omitempty"`
	Queue      string   `json:"queue,omitempty"`
	MessageID  string   `json:"message_id,omitempty"`  // its property
	Deadline   instant  `json:"deadline,omitzero"`     // of a message that expired
	LatenessMS int64    `json:"lateness_ms,omitempty"` // how long after the deadline that was, rounded up
	Path       string   `json:"path,omitempty"`        // how the expiry came about: eager, index, lazy, requeue, manual or scheduled
	Outcome    string   `json:"outcome,omitempty"`     // dead_lettered, dropped or parked
	Exchange   string   `json:"exchange,omitempty"`    // the dead-letter exchange that it went to
	RoutingKey string   `json:"routing_key,omitempty"` // with this key
	To         []string `json:"to,omitempty"`          // into these queues
	Lost       int64    `json:"lost,omitempty"`        // a gap: the number of records before this instant that could not be kept
	Reason     string   `json:"reason,omitempty"`      // rejected, maxlen or delivery_limit; changed: what a user did; absent: it expired
	Operation  string   `json:"operation,omitempty"`   // what a user did, such as purge_queue
	User       string   `json:"user,omitempty"`
	Face       string   `json:"face,omitempty"`   // what the user used: the management API, the dashboard or the command line
	Result     string   `json:"result,omitempty"` // done, refused or failed
	Detail     string   `json:"detail,omitempty"` // in words
}

// instant is a time in Unix ms, RFC 3339 with milliseconds in JSON.
type instant int64

// append adds the milliseconds to a layout that package time formats fast; another layout takes
// four times as long, and was a third of the processor time of a storm of expiries.
func (i instant) append(b []byte) []byte {
	t := time.UnixMilli(int64(i)).UTC()
	ms := t.Nanosecond() / 1e6
	b = t.AppendFormat(b, time.RFC3339)
	return append(b[:len(b)-len("Z")], '.', '0'+byte(ms/100), '0'+byte(ms/10%10), '0'+byte(ms%10), 'Z')
}

func (i *instant) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	*i = instant(t.UnixMilli())
	return err
}

// MarshalJSON implements json.Marshaler.
func (r *Record) MarshalJSON() ([]byte, error) { return r.appendJSON(nil), nil }

// UnmarshalJSON implements json.Unmarshaler.
func (r *Record) UnmarshalJSON(b []byte) error {
	var l Line
	if err := json.Unmarshal(b, &l); err != nil {
		return err
	}
	*r = Record{
		At: int64(l.At), Deadline: int64(l.Deadline), LateMillis: l.LatenessMS, VHost: l.VHost, Queue: l.Queue, MessageID: []byte(l.MessageID), Path: l.Path,
		Outcome: l.Outcome, Exchange: l.Exchange, RoutingKey: []byte(l.RoutingKey), To: l.To, Lost: l.Lost, Reason: l.Reason,
	}
	if l.Reason == Changed {
		r.Change = &Change{Operation: l.Operation, User: l.User, Face: l.Face, Result: l.Result, Detail: l.Detail}
	}
	return nil
}

// appendJSON appends the record as a JSON object. encoding/json takes five times as
// long, which would slow down a storm of expiries.
func (r *Record) appendJSON(b []byte) []byte {
	b = append(instant(r.At).append(append(b, `{"at":"`...)), '"')
	if r.Lost > 0 {
		return append(strconv.AppendInt(append(b, `,"lost":`...), r.Lost, 10), '}')
	}
	b = field(b, "vhost", r.VHost)
	b = field(b, "queue", r.Queue)
	if r.Reason != "" {
		b = field(b, "reason", r.Reason)
	}
	if c := r.Change; c != nil {
		b = field(field(field(b, "operation", c.Operation), "user", c.User), "face", c.Face)
		return append(field(field(b, "result", c.Result), "detail", c.Detail), '}')
	}
	if len(r.MessageID) > 0 {
		b = appendString(append(b, `,"message_id":`...), r.MessageID)
	}
	if r.Reason == "" {
		b = append(instant(r.Deadline).append(append(b, `,"deadline":"`...)), `","lateness_ms":`...)
		b = field(strconv.AppendInt(b, r.LateMillis, 10), "path", r.Path)
	}
	b = field(b, "outcome", r.Outcome)
	if len(r.To) == 0 {
		return append(b, '}')
	}
	b = field(b, "exchange", r.Exchange)
	b = appendString(append(b, `,"routing_key":`...), r.RoutingKey)
	b = append(b, `,"to":[`...)
	for i, queue := range r.To {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(b, queue)
	}
	return append(b, ']', '}')
}

func field(b []byte, name, value string) []byte {
	b = append(append(append(b, `,"`...), name...), `":`...)
	return appendString(b, value)
}

// appendString appends s as a JSON string; what is not UTF-8 becomes U+FFFD.
func appendString[T string | []byte](b []byte, s T) []byte {
	b = append(b, '"')
	plain := 0 // from here on nothing had to be changed
	for i := 0; i < len(s); {
		c, size := s[i], 1
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[plain:i]...)
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			var r rune
			r, size = utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
			b = utf8.AppendRune(b, r)
		}
		i += size
		plain = i
	}
	return append(append(b, s[plain:]...), '"')
}
