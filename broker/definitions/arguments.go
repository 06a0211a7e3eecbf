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
	switch v := v.(type) {
	case nil:
		*a = nil
		return nil
	case map[string]any:
		*a = Arguments(fromJSON(v).(amqp.Table))
		return nil
	case []any:
		if len(v) == 0 {
			*a = nil
			return nil
		}
	}
	return errors.New("arguments must be an object, not " + string(bytes.TrimSpace(b)))
}

// MarshalJSON never writes null.
func (a Arguments) MarshalJSON() ([]byte, error) { return json.Marshal(toJSON(amqp.Table(a))) }

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

func toJSON(v any) any {
	switch v := v.(type) {
	case amqp.Table:
		fields := make(map[string]any, len(v))
		for name, field := range v {
			fields[name] = toJSON(field)
		}
		return fields
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = toJSON(v[i])
		}
		return list
	case []byte:
		return string(v)
	case amqp.Timestamp:
		return int64(v)
	case amqp.Decimal:
		return float64(v.Value) / math.Pow10(int(v.Scale))
	case float32:
		return toJSON(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil
		}
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return json.Number(strconv.FormatFloat(v, 'f', 1, 64)) // otherwise it is read back as an integer
		}
	}
	return v
}
