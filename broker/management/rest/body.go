package rest

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/operate"
	"curfew/broker/policy"
)

// Fields are the JSON object a client sent. Values come as several clients spell
// them: rabbitmqadmin sends every boolean and number as a string.
type Fields map[string]any

// Fields reads the body, which must have these keys. An empty body, or null, which some clients send, is an empty object.
func (r *Request) Fields(needed ...string) (Fields, error) {
	f, err := r.fields()
	if err == nil {
		err = f.Need(needed...)
	}
	return f, err
}

func (r *Request) fields() (Fields, error) {
	b, err := r.ReadBody()
	if err != nil {
		return nil, err
	}
	if len(strings.TrimSpace(string(b))) == 0 {
		return Fields{}, nil
	}
	v, err := policy.ParseJSON(b)
	if err != nil {
		return nil, ErrNotJSON
	}
	switch v := v.(type) {
	case nil:
		return Fields{}, nil
	case map[string]any:
		return v, nil
	case string:
		return nil, Bad("invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?")
	}
	return nil, ErrNotJSON
}

// ReadJSON reads a body into a struct, which must have all of its fields.
func (r *Request) ReadJSON(into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return Bad(err.Error())
	}
	return nil
}

// Need returns an error that names the missing keys.
func (f Fields) Need(keys ...string) error {
	var missing policy.MissingKeys
	for _, key := range keys {
		if _, ok := f[key]; !ok {
			missing = append(missing, key)
		}
	}
	if missing == nil {
		return nil
	}
	text := missing.Error()
	if len(text) > 80 { // RabbitMQ's lines end there
		text = strings.ReplaceAll(text, "},{", "},\n {")
	}
	return Bad(text)
}

// Boolean reads a boolean; absent is the value of a missing field.
func (f Fields) Boolean(key string, absent bool) (bool, error) {
	switch v := f[key].(type) {
	case nil:
		return absent, nil
	case bool:
		return v, nil
	case string:
		switch v {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, Bad([]any{"not_boolean", f[key]})
}

// Integer reads an integer; absent is the value of a missing field.
func (f Fields) Integer(key string, absent int64) (int64, error) {
	switch v := f[key].(type) {
	case nil:
		return absent, nil
	case int64:
		return v, nil
	case float64:
		if v == math.Trunc(v) {
			return int64(v), nil
		}
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, Bad([]any{"not_integer", f[key]})
}

// Text reads a text; absent is the value of a missing field.
func (f Fields) Text(key, absent string) (string, error) {
	switch v := f[key].(type) {
	case nil:
		return absent, nil
	case string:
		return v, nil
	}
	return "", Bad([]any{"not_string", key})
}

// Tags reads tags as a list or as one text with commas.
func (f Fields) Tags(key string) ([]string, error) {
	switch v := f[key].(type) {
	case nil:
		return []string{}, nil
	case string:
		return splitTags(v), nil
	case []any:
		tags := []string{}
		for _, one := range v {
			tag, ok := one.(string)
			if !ok {
				return nil, Bad([]any{"not_string", key})
			}
			tags = append(tags, tag)
		}
		return tags, nil
	}
	return nil, Bad([]any{"not_string", key})
}

func splitTags(text string) []string {
	tags := []string{}
	for tag := range strings.SplitSeq(text, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return tags
}

// Table reads arguments or headers. rabbitmqadmin may send an empty list for no
// arguments.
func (f Fields) Table(key string) (amqp.Table, error) {
	switch v := f[key].(type) {
	case nil:
		return nil, nil
	case []any:
		if len(v) == 0 {
			return nil, nil
		}
	case map[string]any:
		return operate.TableOf(v)
	}
	return nil, Bad([]any{"not_table", key})
}
