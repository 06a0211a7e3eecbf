package ui

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"curfew/broker/amqp"
)

// Pair is a name with a value as text.
type Pair struct{ Name, Value string }

// Properties lists the properties that are set, except the headers.
func Properties(p *amqp.Properties) (list []Pair) {
	for _, one := range amqp.NamedProperties {
		if p.Has&one.Flag != 0 && one.Flag&(amqp.HasDeliveryMode|amqp.HasClusterID) == 0 { // pages say otherwise whether it is persistent
			list = append(list, Pair{strings.ReplaceAll(one.Name, "_", "-"), fieldText(reflect.ValueOf(one.Of(p)).Elem().Interface())})
		}
	}
	return list
}

// Fields lists the fields of a table or definition by name.
func Fields[T ~map[string]any](t T) []Pair {
	list := make([]Pair, 0, len(t))
	for name, v := range t {
		list = append(list, Pair{name, fieldText(v)})
	}
	slices.SortFunc(list, func(a, b Pair) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// spans are the settings of queues and policies that are a number of ms.
var spans = []string{"message-ttl", "expires", "lock-duration", "auto-delete-on-idle", "consumer-timeout"}

// Settings lists the arguments of a queue, or what a policy sets, by name. A number of ms is a span of time.
func Settings[T ~map[string]any](t T) []Pair {
	list := Fields(t)
	for i, one := range list {
		if n, err := strconv.ParseInt(one.Value, 10, 64); err == nil && n <= math.MaxInt64/int64(time.Millisecond) && slices.Contains(spans, strings.TrimPrefix(one.Name, "x-")) {
			list[i].Value = Millis(n)
		}
	}
	return list
}

// fieldText is the value of a field as text.
func fieldText(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case []byte:
		return string(v)
	case amqp.Timestamp:
		if at := time.Unix(int64(v), 0).UTC(); at.Year() < 10_000 {
			return Instant(at)
		}
		return strconv.FormatUint(uint64(v), 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = fieldText(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case amqp.Table:
		parts := make([]string, 0, len(v))
		for _, p := range Fields(v) {
			parts = append(parts, p.Name+"="+p.Value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return fmt.Sprint(v)
}
