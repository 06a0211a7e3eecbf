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
	add := func(flag amqp.PropertySet, name string, v any) {
		if p.Has&flag != 0 {
			o[name] = v
		}
	}
	add(amqp.HasContentType, "content_type", p.ContentType)
	add(amqp.HasContentEncoding, "content_encoding", p.ContentEncoding)
	add(amqp.HasHeaders, "headers", definitions.JSONOf(p.Headers))
	add(amqp.HasDeliveryMode, "delivery_mode", p.DeliveryMode)
	add(amqp.HasPriority, "priority", p.Priority)
	add(amqp.HasCorrelationID, "correlation_id", p.CorrelationID)
	add(amqp.HasReplyTo, "reply_to", p.ReplyTo)
	add(amqp.HasExpiration, "expiration", p.Expiration)
	add(amqp.HasMessageID, "message_id", p.MessageID)
	add(amqp.HasTimestamp, "timestamp", uint64(p.Timestamp))
	add(amqp.HasType, "type", p.Type)
	add(amqp.HasUserID, "user_id", p.UserID)
	add(amqp.HasAppID, "app_id", p.AppID)
	add(amqp.HasClusterID, "cluster_id", p.ClusterID)
	return o
}
