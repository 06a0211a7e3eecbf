package deadletters

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/expr-lang/expr/types"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

// Word is a word of filters: a field, a function or an operator. The tables below are the only place that has them: the checker, the completion
// of shells and pages, and the documentation read them.
type Word struct{ Name, Kind, Text, Example string }

// Field is a word for something that a dead letter has.
type Field struct {
	Word
	is types.Type
	of func(*Letter) any
}

// What a field may be, in words and as expr's types. Times are nil if there is none.
var (
	text  = types.String
	whole = types.Int
	yes   = types.Bool
	clock = types.TypeOf(time.Time{})
	table = types.TypeOf(map[string]any{})
	dead  = types.Array(types.Map{"reason": text, "queue": text, "exchange": text, "routing_keys": types.Array(text), "count": whole, "time": clock})
)

var kinds = map[types.Type]string{text: "text", whole: "number", yes: "true or false", clock: "time", table: "table", types.Any: "any"}

func field(name string, is types.Type, says, example string, of func(*Letter) any) Field {
	kind := "list"
	if name != "deaths" {
		kind = kinds[is]
	}
	return Field{Word{name, kind, says, example}, is, of}
}

// Reasons are the reasons that RabbitMQ writes into x-death.
var Reasons = []string{"expired", "rejected", "maxlen", "delivery_limit"}

// reasonWords explain the reasons that are not obvious.
var reasonWords = map[string]string{"maxlen": "the queue was full", "delivery_limit": "delivered too often", "rejected": "by a consumer"}

// ReasonWords explains a reason, in brackets; "": it is obvious.
func ReasonWords(reason string) string {
	if words := reasonWords[reason]; words != "" {
		return " (" + words + ")"
	}
	return ""
}

const headersField = "headers"

// Fields are the fields, the most useful first.
var Fields = []Field{
	field("reason", text, "why it died last: expired, rejected, maxlen or delivery_limit; empty if it never died", `reason == "expired"`, func(l *Letter) any { return l.last().Reason }),
	field("queue", text, "the queue in which it died last", `queue == "orders"`, func(l *Letter) any { return l.last().Queue }),
	field("exchange", text, "the exchange to which it was published then; empty for the default exchange", `exchange == "shop"`, func(l *Letter) any { return l.last().Exchange }),
	field("routing_key", text, "the first routing key with which it was published then", `routing_key startsWith "eu."`, func(l *Letter) any { return l.firstKey() }),
	field("died", clock, "when it died last, in whole seconds", `died > ago("2h")`, func(l *Letter) any { return instant(l.last().Time) }),
	field(headersField, table, "the headers", `headers["tenant"] == "globex"`, func(l *Letter) any { return plain(l.Properties.Headers) }),
	field("json", types.Any, "the body as JSON, if it is JSON and has 1 MiB at most", `json.customer.id == 7`, func(l *Letter) any { return l.json() }),
	field("body", text, "the body as text, without its content encoding; 4 MiB at most of a packed one", `body contains "timeout"`, func(l *Letter) any { return string(l.unpacked()) }),
	field("deaths", dead, "all its deaths, the last first, each with reason, queue, exchange, routing_keys, count and time", `any(deaths, .queue == "orders")`, func(l *Letter) any { return l.deaths() }),
	field("via", text, "the exchange by which it came to the queue that it is in", `via == "dlx"`, func(l *Letter) any { return string(l.Message.Exchange) }),
	field("replays", whole, "how often it was replayed", `replays == 0`, func(l *Letter) any { return int(l.Replays) }),
	field("run", text, "the ID of the replay that replayed it last", `run != ""`, func(l *Letter) any { return l.ReplayID }),
	field("redelivered", yes, "whether it was delivered before", `redelivered`, func(l *Letter) any { return l.Redelivered }),
	field("bytes", whole, "the size of the body as it was sent", `bytes > 1000`, func(l *Letter) any { return l.BodyBytes }),
	field("seq", whole, "its number in the queue", `seq in [17, 18]`, func(l *Letter) any { return int(l.Seq) }),
}

// large are the fields that a predicate may not use again for each element; true: they need the whole body.
var large = map[string]bool{"headers": false, "deaths": false, "json": true, "body": true}

func init() {
	examples := map[string]string{"type": `type == "order.created"`, "content_type": `content_type == "application/json"`, "priority": `priority >= 5`, "delivery_mode": `delivery_mode == 2`, "timestamp": `timestamp < date("2030-01-31")`}
	for _, p := range amqp.NamedProperties {
		is, says := text, "the property; empty if there is none"
		switch p.Of(&amqp.Properties{}).(type) {
		case *uint8:
			is, says = whole, "the property; 0 if there is none"
		case *amqp.Timestamp:
			is, says = clock, "the property"
		}
		Fields = append(Fields, field(p.Name, is, says, cmp.Or(examples[p.Name], p.Name+` != ""`), func(l *Letter) any {
			switch v := p.Of(&l.Properties).(type) {
			case *string:
				return *v
			case *uint8:
				return int(*v)
			default:
				return plain(*v.(*amqp.Timestamp))
			}
		}))
	}
}

// Functions are the functions, and the predicates over lists.
var Functions = []Word{
	{"ago", "time", "the instant so long ago: h, m and s, or days as 24h", `died < ago("90m")`},
	{"date", "time", "an instant, in UTC unless it names a zone", `died > date("2030-01-31 08:00")`},
	{"any", "true or false", "whether one element does; # is the element, .x its x", `any(json.items, .sku == "a")`},
	{"all", "true or false", "whether each element does", `all(json.items, .price > 0)`},
	{"none", "true or false", "whether no element does", `none(deaths, .reason == "rejected")`},
	{"count", "number", "how many elements do", `count(deaths, .count > 1) > 1`},
	{"len", "number", "how many characters, elements or names something has", `len(json.items) > 10`},
	{"lower", "text", "text in lower case", `lower(type) == "order"`},
	{"upper", "text", "text in upper case", `upper(app_id) == "SHOP"`},
	{"string", "text", "any value as text", `string(headers["n"]) == "1"`},
	{"number", "number", "text as a number", `number(headers["n"]) > 1`},
}

// Operators are the operators, the ones that bind tightest first.
var Operators = []Word{
	{"!", "true or false", "not; also written not", `!(reason == "expired")`},
	{"==", "true or false", "equal; not equal is !=", `json.paid == true`},
	{"<", "true or false", "less; also <=, > and >=, for numbers, text and times", `json.total >= 100`},
	{"in", "true or false", "an element of a list or a name of a table", `type in ["a", "b"]`},
	{"contains", "true or false", "has this text; also startsWith and endsWith", `body contains "a"`},
	{"matches", "true or false", "matches this RE2 expression somewhere", `body matches "error \\d+"`},
	{"&&", "true or false", "both; also written and", `reason == "expired" && replays == 0`},
	{"||", "true or false", "one or both; also written or", `queue == "a" || queue == "b"`},
}

// Complete returns what may follow a part of an expression: the part with its last word completed, and the words.
func Complete(part string) (begin string, words []Word) {
	at := strings.LastIndexAny(part, " ()[],.!=<>&|") + 1
	begin, last := part[:at], part[at:]
	if strings.Count(begin, `"`)%2 == 1 || strings.HasSuffix(begin, ".") {
		return part, nil // in a text, or a name in the message
	}
	for _, f := range Fields {
		words = append(words, f.Word)
	}
	words = append(append(words, Functions...), Operators...)
	n := 0
	for _, w := range words {
		if strings.HasPrefix(w.Name, last) && (last != "" || w.Name[0] >= 'a') {
			words[n] = w
			n++
		}
	}
	return begin, words[:n]
}

// ParseInstant reads an instant (deadline.ParseTime), or how long ago it was, such as 2h. "" is the zero time.
func ParseInstant(text string, now time.Time) (time.Time, error) {
	if text = strings.TrimSpace(text); text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago).UTC(), nil
	}
	at, err := deadline.ParseTime(text)
	if err != nil {
		err = fmt.Errorf("%w, or a duration such as 2h", err)
	}
	return at, err
}
