package rest

import (
	"encoding/base64"
	"unicode/utf8"

	"curfew/broker"
	"curfew/broker/amqp"
)

// MessageWeight is the weight of a route whose body has a message: its payload is in memory as received, in the object, as text, as bytes and in
// the store.
const MessageWeight = 5

// Message is a message that an answer shows.
type Message struct {
	Exchange, RoutingKey string
	Redelivered          bool
	Properties           []byte // as stored
	Body                 []byte // or its beginning
	Bytes                int    // of the whole body
}

// Object returns the message in the form of RabbitMQ's get. encoding is the encoding of the body: "base64"; with any other value a UTF-8 body is text.
func (m *Message) Object(encoding string) Object {
	var payload string
	if encoding == "base64" {
		payload = base64.StdEncoding.EncodeToString(m.Body)
	} else {
		payload, encoding = TextOf(m.Body)
	}
	return Object{
		"payload_bytes": m.Bytes, "redelivered": m.Redelivered, "exchange": m.Exchange, "routing_key": m.RoutingKey,
		"properties": PropertiesObject(m.Properties), "payload": payload, "payload_encoding": encoding,
	}
}

// TextOf returns a body as text, and the encoding: "string" if it is UTF-8, otherwise "base64".
func TextOf(body []byte) (text, encoding string) {
	if utf8.Valid(body) {
		return string(body), "string"
	}
	return base64.StdEncoding.EncodeToString(body), "base64"
}

// BodyOf returns the body that a text stands for. encoding is "string" or "base64".
func BodyOf(text string, encoding any) ([]byte, error) {
	switch encoding {
	case "string":
		return []byte(text), nil
	case "base64":
		body, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, Bad([]any{"not_base64", text})
		}
		return body, nil
	}
	return nil, Bad([]any{"unsupported_encoding", encoding})
}

// PropertiesObject returns the properties that a message has. raw are the stored properties.
func PropertiesObject(raw []byte) Object {
	o := Object{}
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
	add(amqp.HasHeaders, "headers", JSONOf(p.Headers))
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
