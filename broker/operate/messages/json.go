package messages

import (
	"encoding/base64"
	"unicode/utf8"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/definitions"
	"curfew/broker/operate"
)

// TextOf returns a body as text, and the encoding: "string" if it is UTF-8, otherwise "base64".
func TextOf(body []byte) (text, encoding string) {
	if utf8.Valid(body) {
		return string(body), "string"
	}
	return base64.StdEncoding.EncodeToString(body), "base64"
}

// Encoded is TextOf, but base64 for the encoding "base64".
func Encoded(body []byte, encoding string) (text, is string) {
	if encoding == "base64" {
		return base64.StdEncoding.EncodeToString(body), encoding
	}
	return TextOf(body)
}

// BodyOf returns the body that a text stands for. encoding is "string" or "base64".
func BodyOf(text string, encoding any) ([]byte, error) {
	switch encoding {
	case "string":
		return []byte(text), nil
	case "base64":
		body, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, &operate.Wrong{Field: "payload", Code: "not_base64", About: []any{text}}
		}
		return body, nil
	}
	return nil, &operate.Wrong{Field: "payload_encoding", Code: "unsupported_encoding", About: []any{encoding}}
}

// PropertiesOf returns the properties that a message has. raw are the stored properties.
func PropertiesOf(raw []byte) map[string]any {
	o := map[string]any{}
	p, err := broker.ParseStored(raw)
	if err != nil {
		return o
	}
	for _, one := range amqp.NamedProperties {
		if p.Has&one.Flag != 0 {
			o[one.Name] = one.Of(&p)
		}
	}
	if p.Has&amqp.HasHeaders != 0 {
		o["headers"] = definitions.JSONOf(p.Headers)
	}
	return o
}
