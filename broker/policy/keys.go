package policy

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// A key is one setting of a definition.
type key struct {
	operator bool           // operator policies may set it too
	valid    func(any) bool // nil: checked with its group, see mirroring
	problem  string         // what RabbitMQ says after the value
}

// queueKeys are Curfew's own keys that mean nothing to exchanges. RabbitMQ accepts its own keys
// for anything.
var queueKeys = []string{"dead-letter-queue", "lock-duration", "max-delivery-count"}

// longest is the longest possible period, ten years in ms (RabbitMQ: Time-To-Live).
const longest = 315_360_000_000

var keys = map[string]key{
	"alternate-exchange":            {false, name, " is not a valid alternate exchange name"},
	"dead-letter-exchange":          {false, name, " is not a valid dead letter exchange name"},
	"dead-letter-routing-key":       {false, name, " is not a valid dead letter routing key"},
	"dead-letter-strategy":          {false, oneOf("at-most-once", "at-least-once"), " is not a valid dead letter strategy"},
	"message-ttl":                   {true, atLeast(0), " is not a valid message TTL"},
	"ttl-precedence":                {false, oneOf("min", "message"), " is not a valid TTL precedence: it is min or message"},
	"expires":                       {true, atLeast(1), " is not a valid queue expiry"},
	"max-length":                    {true, atLeast(0), " is not a valid maximum length"},
	"max-length-bytes":              {true, atLeast(0), " is not a valid maximum length in bytes"},
	"max-in-memory-length":          {true, atLeast(0), " is not a valid maximum memory in bytes"},
	"max-in-memory-bytes":           {true, atLeast(0), " is not a valid maximum memory in bytes"},
	"overflow":                      {true, oneOf("drop-head", "reject-publish", "reject-publish-dlx"), " is not a valid overflow value"},
	"delivery-limit":                {true, integer, " is not a valid delivery limit"},
	"lock-duration":                 {false, between(1, longest), " is not a valid lock duration"},
	"dead-letter-queue":             {false, boolean, " is not a valid value of dead-letter-queue, which is true or false"},
	"auto-delete-on-idle":           {true, between(1, longest), " is not a valid idle period"},
	"max-delivery-count":            {true, between(1, 1<<16-1), " is not a valid maximum delivery count"},
	"consumer-timeout":              {false, atLeast(0), " is not a valid consumer timeout"},
	"remaining-expiration":          {false, boolean, " is not a valid remaining expiration setting; it is true or false"},
	"queue-mode":                    {false, oneOf("default", "lazy"), " is not a valid queue-mode value"},
	"queue-version":                 {true, oneOf(int64(1), int64(2)), " is not a valid queue-version value"},
	"max-age":                       {false, age, " is not a valid max age"},
	"stream-max-segment-size-bytes": {false, atLeast(0), " is not a valid segment size"},
	"initial-cluster-size":          {false, atLeast(0), " is not a valid cluster size"},
	"queue-leader-locator":          {false, oneOf("client-local", "balanced", "random", "least-leaders"), " is not a valid queue leader locator value"},
	"queue-master-locator":          {false, oneOf("client-local", "min-masters", "random"), " invalid queue-master-locator value"},
}

// checkDefinition returns the first thing that is wrong with a definition, or "".
func checkDefinition(k Kind, v any) string {
	d, ok := v.(map[string]any)
	if !ok {
		return "definition must be a dictionary: " + term(v)
	}
	if len(d) == 0 {
		return "no policy provided"
	}
	var unknown []string
	for _, name := range slices.Sorted(maps.Keys(d)) {
		known, ok := keys[name]
		switch {
		case k == User && slices.Contains(mirrorKeys, name):
		case !ok || k == Operator && !known.operator:
			unknown = append(unknown, "{"+term(name)+","+term(d[name])+"}")
		case !known.valid(d[name]):
			return term(d[name]) + known.problem
		}
	}
	if k == User {
		if problem := checkMirroring(d); problem != "" {
			return problem
		}
	}
	if unknown != nil {
		return "[" + strings.Join(unknown, ",") + "] are not recognised policy settings"
	}
	return ""
}

func text(v any) bool {
	_, ok := v.(string)
	return ok
}

// name reports whether v is a text that fits an AMQP short string: a dead letter could not be written with a longer one. RabbitMQ accepts any.
func name(v any) bool {
	s, ok := v.(string)
	return ok && len(s) <= 255
}

func boolean(v any) bool {
	_, ok := v.(bool)
	return ok
}

func integer(v any) bool {
	_, ok := v.(int64)
	return ok
}

func atLeast(low int64) func(any) bool { return between(low, math.MaxInt64) }

func between(low, high int64) func(any) bool {
	return func(v any) bool {
		n, ok := v.(int64)
		return ok && n >= low && n <= high
	}
}

func oneOf(values ...any) func(any) bool {
	return func(v any) bool {
		switch v.(type) {
		case string, int64:
			return slices.Contains(values, v)
		}
		return false
	}
}

// age is a stream's max-age: digits and a unit.
func age(v any) bool {
	s, _ := v.(string)
	digits := strings.TrimRight(s, "YMDhms")
	return len(s)-len(digits) == 1 && digits != "" && strings.Trim(digits, "0123456789") == ""
}
