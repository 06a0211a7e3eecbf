package rest

import (
	"encoding/base64"

	"curfew/broker/operate/messages"
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
		payload, encoding = messages.TextOf(m.Body)
	}
	return Object{
		"payload_bytes": m.Bytes, "redelivered": m.Redelivered, "exchange": m.Exchange, "routing_key": m.RoutingKey,
		"properties": messages.PropertiesOf(m.Properties), "payload": payload, "payload_encoding": encoding,
	}
}
