package messages

import (
	"encoding/base64"
	"unicode/utf8"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
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

// MessageOf is a message in the form of RabbitMQ's get. encoding is that of the body: "base64"; with any other value a UTF-8 body is text.
func MessageOf(x *broker.Browsed, encoding string) deadletters.Message {
	m := deadletters.Message{
		Redelivered: x.Redelivered, Exchange: string(x.Message.Exchange), RoutingKey: string(x.Message.RoutingKey), Properties: PropertiesOf(x.Message.Properties), Bytes: x.BodyBytes,
	}
	m.Payload, m.Encoding = Encoded(x.Message.Body, encoding)
	return m
}

// QueuedOf is a message in the form of a peek.
func QueuedOf(b *broker.Broker, x *broker.Browsed, encoding string) deadletters.Queued {
	q := deadletters.Queued{Seq: x.Seq, State: x.State.String(), Persistent: x.Persistent, Message: MessageOf(x, encoding)}
	if q.Truncated = len(x.Message.Body) < x.BodyBytes; x.Deadline != 0 {
		q.Deadline = new(b.UnixMillis(x.Deadline))
	}
	return q
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
