package operate

import (
	"fmt"

	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/server"
)

// TableOf makes arguments or headers from a JSON object whose numbers are int64 or float64. Error: *Wrong.
func TableOf(object map[string]any) (amqp.Table, error) {
	t := amqp.Table{}
	for key, one := range object {
		if len(key) > maxShortText {
			return nil, &Wrong{Text: fmt.Sprintf("key of %d octets is too long", len(key))}
		}
		value, err := fieldOf(one)
		if err != nil {
			return nil, err
		}
		t[key] = value
	}
	return t, nil
}

// fieldOf turns a JSON value into a field value (AMQP 0-9-1 §4.2.5.5).
func fieldOf(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return nil, &Wrong{Text: "null_not_allowed"}
	case map[string]any:
		return TableOf(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = fieldOf(v[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return v, nil // bool, string, int64, float64
}

// ParseObject reads a JSON object that a person typed; an empty text is an empty object. Error: *Wrong.
func ParseObject(text string) (map[string]any, error) {
	if text == "" {
		return map[string]any{}, nil
	}
	v, err := policy.ParseJSON([]byte(text))
	if err != nil {
		return nil, &Wrong{Text: "it is not JSON: " + err.Error()}
	}
	object, ok := v.(map[string]any)
	if !ok {
		return nil, &Wrong{Text: `it is not a JSON object, for example {"key": "value"}`}
	}
	return object, nil
}

// The broker's types for what faces declare.
type (
	Connection = server.ConnectionInfo
	Table      = amqp.Table
	Properties = amqp.Properties
)
