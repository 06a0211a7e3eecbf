package rest

import (
	"encoding/json"
	"strings"

	"curfew/broker/policy"
)

// Fields are the JSON object a client sent. Values come as several clients spell
// them: rabbitmqadmin sends every boolean and number as a string. operate.Read reads them.
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
	decoder := json.NewDecoder(r.HTTP.Body)
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
