package rest

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"curfew/broker/operate"
	"curfew/broker/policy"
)

// Fields are the JSON object a client sent. Values come as several clients spell
// them: rabbitmqadmin sends every boolean and number as a string. operate.Read reads them.
type Fields map[string]any

// Fields reads the body, which must have these keys. An empty body, or null, which some clients send, is an empty object.
func (r *Request) Fields(needed ...string) (Fields, error) {
	f, err := r.fields(nil)
	if err == nil {
		err = f.Need(needed...)
	}
	return f, err
}

// fields reads the body of a request for an operation; nil: for none. What a field has that is JSON stays as it was sent.
func (r *Request) fields(op *operate.Op) (Fields, error) {
	b, err := r.ReadBody()
	if err != nil {
		return nil, err
	}
	if len(strings.TrimSpace(string(b))) == 0 {
		return Fields{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.UseNumber()
	var v any
	if decoder.Decode(&v) != nil {
		return nil, ErrNotJSON
	}
	switch v := v.(type) {
	case nil:
		return Fields{}, nil
	case map[string]any:
		for name, one := range v {
			number, _ := one.(json.Number)
			_, notNatural := strconv.ParseUint(number.String(), 10, 64)
			_, notInteger := number.Int64()
			switch {
			case op == nil || op.Field(name) == nil:
				v[name] = policy.Whole(one)
			case op.Field(name).IsJSON():
			case notNatural == nil && notInteger != nil: // the sequence number of a message with a high priority
				v[name] = number.String()
			default:
				v[name] = policy.Whole(one)
			}
		}
		return v, nil
	case string:
		return nil, Bad("invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?")
	}
	return nil, ErrNotJSON
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
