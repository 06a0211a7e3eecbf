package definitions

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"curfew/broker/amqp"
	"curfew/broker/policy"
)

// Arguments are AMQP arguments in RabbitMQ's JSON form: integers of any width are numbers,
// times are seconds. Both are read back as 64-bit integers.
type Arguments amqp.Table

// UnmarshalJSON reads an object, or the empty list that Erlang writes for no arguments.
func (a *Arguments) UnmarshalJSON(b []byte) error {
	v, err := policy.ParseJSON(b)
	if err != nil {
		return err
	}
	if list, isList := v.([]any); v == nil || isList && len(list) == 0 {
		*a = nil
		return nil
	}
	table, isObject := fromJSON(v).(amqp.Table)
	if !isObject {
		return errors.New("arguments must be an object, not " + string(bytes.TrimSpace(b)))
	}
	*a = Arguments(table)
	return nil
}

// MarshalJSON never writes null.
func (a Arguments) MarshalJSON() ([]byte, error) { return policy.FormatJSON(JSONOf(amqp.Table(a)), "") }

func fromJSON(v any) any {
	switch v := v.(type) {
	case map[string]any:
		t := make(amqp.Table, len(v))
		for name, field := range v {
			t[name] = fromJSON(field)
		}
		return t
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = fromJSON(v[i])
		}
		return list
	}
	return v
}

// JSONOf turns a table into a JSON object.
func JSONOf(t amqp.Table) map[string]any {
	fields := make(map[string]any, len(t))
	for name, field := range t {
		fields[name] = toJSON(field)
	}
	return fields
}

// toJSON turns a field value into a JSON value. Numbers that JSON does not have become text.
func toJSON(v any) any {
	switch v := v.(type) {
	case amqp.Table:
		return JSONOf(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = toJSON(v[i])
		}
		return list
	case []byte:
		return string(v)
	case amqp.Timestamp:
		return uint64(v)
	case amqp.Decimal:
		return float64(v.Value) / math.Pow10(int(v.Scale))
	case float32:
		return toJSON(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return json.Number(strconv.FormatFloat(v, 'f', 1, 64)) // otherwise it is read back as an integer
		}
	}
	return v
}
