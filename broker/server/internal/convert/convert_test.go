package convert_test

import (
	"bytes"
	"testing"

	"github.com/Azure/go-amqp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	wire "curfew/broker/amqp"
	"curfew/broker/amqp10"
	"curfew/broker/server/internal/convert"
)

// across is a message after it was stored and delivered.
func across(t *testing.T, message []byte) (back []byte, p wire.Properties, body []byte) {
	t.Helper()
	properties, body, _, err := convert.Publish(nil, message, false)
	require.NoError(t, err)
	p, err = wire.ParseProperties(properties, wire.Limits{})
	require.NoError(t, err)
	return convert.Append(nil, &convert.Delivery{Exchange: []byte("x"), RoutingKey: []byte("k"), Properties: properties, Body: body}), p, body
}

// TestBareMessage: it comes back octet by octet, however a client has written it.
func TestBareMessage(t *testing.T) {
	subject, contentType := "s", "text/plain"
	properties := &amqp.MessageProperties{MessageID: uint64(7), Subject: &subject, ContentType: &contentType, GroupSequence: new(uint32)}
	for name, m := range map[string]*amqp.Message{
		"data":     {Properties: properties, Data: [][]byte{[]byte("body")}, ApplicationProperties: map[string]any{"k": int64(1)}},
		"long":     {Data: [][]byte{bytes.Repeat([]byte("x"), 1000)}},
		"empty":    {Data: [][]byte{{}}},
		"parts":    {Properties: properties, Data: [][]byte{[]byte("a"), []byte("b")}},
		"value":    {Properties: properties, Value: map[string]any{"a": []any{int32(1), "b"}}},
		"sequence": {Sequence: [][]any{{"a", int64(2)}}},
		"header":   {Header: &amqp.MessageHeader{Durable: true, Priority: 7}, Annotations: amqp.Annotations{"x-a": "b"}, Data: [][]byte{[]byte("body")}},
	} {
		sent, err := m.MarshalBinary()
		require.NoError(t, err, name)
		back, _, _ := across(t, sent)
		was, err := amqp10.Split(sent)
		require.NoError(t, err, name)
		is, err := amqp10.Split(back)
		require.NoError(t, err, name)
		assert.Equal(t, was.Bare, is.Bare, name)
		var read amqp.Message
		assert.NoError(t, read.UnmarshalBinary(back), name)
	}
}
