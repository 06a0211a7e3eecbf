package delay

import (
	"testing"
	"time"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"curfew/monitor/rabbitmq/keeper"
)

// TestFingerprintOverBothProtocols: messages as RabbitMQ 4.3.6 delivered them over AMQP 0-9-1 and 1.0.
func TestFingerprintOverBothProtocols(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	text := func(s string) *string { return &s }
	header := func(change func(h *amqp.MessageHeader)) *amqp.MessageHeader {
		h := &amqp.MessageHeader{Priority: 4}
		if change != nil {
			change(h)
		}
		return h
	}
	properties := &amqp.MessageProperties{MessageID: "m", UserID: []byte("guest"), ReplyTo: text("/queues/r%2F%C3%A4%20%2541"), CorrelationID: "c",
		ContentType: text("text/plain"), ContentEncoding: text("gzip"), CreationTime: &at, GroupID: text("app")}
	id := amqp.UUID{0xf8, 0x1d, 0x4f, 0xae, 0x7d, 0xec, 0x11, 0xd0, 0xa7, 0x65, 0x00, 0xa0, 0xc9, 0x1e, 0x6b, 0xf6}
	prints := map[uint64]string{}
	for name, one := range map[string]struct {
		over091 amqp091.Delivery
		over10  amqp.Message
	}{
		"no properties": {amqp091.Delivery{}, amqp.Message{}},
		"all properties": {
			amqp091.Delivery{Headers: amqp091.Table{"a": "b"}, ContentType: "text/plain", ContentEncoding: "gzip", DeliveryMode: 2, Priority: 5, CorrelationId: "c", ReplyTo: "r/ä %41",
				Expiration: "3600000", MessageId: "m", Timestamp: at, Type: "ty", UserId: "guest", AppId: "app", Body: []byte("x")},
			amqp.Message{Header: header(func(h *amqp.MessageHeader) { h.Durable, h.Priority, h.TTL = true, 5, time.Hour }), Annotations: amqp.Annotations{"x-basic-type": "ty"},
				ApplicationProperties: map[string]any{"a": "b"}, Properties: properties, Data: [][]byte{[]byte("x")}},
		},
		"transient":     {amqp091.Delivery{DeliveryMode: 1, AppId: "1"}, amqp.Message{Properties: &amqp.MessageProperties{GroupID: text("1")}}},
		"priority of 4": {amqp091.Delivery{Priority: 4, AppId: "4"}, amqp.Message{Properties: &amqp.MessageProperties{GroupID: text("4")}}},
		"timestamp of 0": {
			amqp091.Delivery{Timestamp: time.Unix(0, 0)}, amqp.Message{Properties: &amqp.MessageProperties{CreationTime: new(time.Unix(0, 0))}},
		},
		"UUIDs": {
			amqp091.Delivery{MessageId: "urn:uuid:F81D4FAE-7dec-11d0-a765-00a0c91e6bf6", CorrelationId: "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6"},
			amqp.Message{Properties: &amqp.MessageProperties{MessageID: id, CorrelationID: id}},
		},
		"numbers": {
			amqp091.Delivery{Headers: amqp091.Table{"a": int8(-1), "b": int16(-2), "c": int32(-3), "d": int64(-4), "e": byte(200), "f": uint16(60000), "g": uint32(4e9), "h": float32(1.5), "i": 2.5}},
			amqp.Message{ApplicationProperties: map[string]any{"a": int8(-1), "b": int16(-2), "c": int32(-3), "d": int64(-4), "e": uint8(200), "f": uint16(60000), "g": uint32(4e9), "h": float32(1.5), "i": 2.5}},
		},
		"other types": {
			amqp091.Delivery{Headers: amqp091.Table{"a": true, "b": nil, "c": at, "d": []byte{1, 2}, "e": "\xff\xfe", "f": "a\x00b", "x-a": nil, "x-d": []byte{1, 2}, "x-e": "\xff\xfe"}},
			amqp.Message{ApplicationProperties: map[string]any{"a": true, "b": nil, "c": at, "d": []byte{1, 2}, "e": []byte("\xff\xfe"), "f": []byte("a\x00b")},
				Annotations: amqp.Annotations{"x-a": nil, "x-d": []byte{1, 2}, "x-e": []byte("\xff\xfe")}},
		},
		"tables": {
			amqp091.Delivery{Headers: amqp091.Table{"t": amqp091.Table{"a": int32(1)}, "l": []any{"a", int32(2)}, "CC": []any{"other"}, "x-empty": []any(nil), "x-none": amqp091.Table{},
				"x-l": []any{"a", int64(2), amqp091.Table{"z": "y"}}, "x-t": amqp091.Table{"a": int32(1), "b": amqp091.Table{"c": []any{"x", []byte("y"), nil}}}}},
			amqp.Message{Annotations: amqp.Annotations{"x-cc": []any{"other"}, "x-empty": []any(nil), "x-none": map[any]any{},
				"x-l": []any{"a", int64(2), map[string]any{"z": "y"}}, "x-t": map[string]any{"a": int32(1), "b": map[string]any{"c": []any{"x", []byte("y"), nil}}}}},
		},
		"headers with names of annotations": {
			amqp091.Delivery{Headers: amqp091.Table{"x-exchange": "e", "x-routing-key": "k", "x-opt-deaths": "d", "x-opt-rabbitmq-received-time": "n", "x-cc": "own", "x-first-death-queue": "fd"}, RoutingKey: "q"},
			amqp.Message{Annotations: amqp.Annotations{"x-exchange": "", "x-routing-key": "q", "x-opt-deaths": "d", "x-opt-rabbitmq-received-time": "n", "x-cc": "own", "x-first-death-queue": "fd"}},
		},
		"a publisher's own x-death": {
			amqp091.Delivery{Headers: amqp091.Table{"x-death": []any{amqp091.Table{"queue": "other", "count": int64(2), "time": at}}}},
			amqp.Message{Annotations: amqp.Annotations{"x-death": []any{map[string]any{"queue": "other", "count": int64(2), "time": at}}}},
		},
		"a dead letter": {
			amqp091.Delivery{DeliveryMode: 2, Headers: amqp091.Table{"x-last-death-queue": "first", "x-death": []any{amqp091.Table{"count": int64(1), "exchange": "", "original-expiration": "10",
				"queue": "first", "reason": "expired", "routing-keys": []any{"first"}, "time": at}}}},
			amqp.Message{Header: header(func(h *amqp.MessageHeader) { h.Durable, h.TTL = true, 10*time.Millisecond }), Annotations: amqp.Annotations{"x-last-death-queue": "first",
				"x-opt-deaths": []map[any]any{{"count": uint64(1), "exchange": "", "first-time": at.Add(215 * time.Millisecond), "last-time": at.Add(time.Hour), "queue": "first", "reason": "expired",
					"routing-keys": []string{"first"}, "ttl": uint32(10)}}}},
		},
		"a timestamp from RabbitMQ": {
			amqp091.Delivery{Timestamp: at, Headers: amqp091.Table{"timestamp_in_ms": at.UnixMilli() + 5}},
			amqp.Message{Annotations: amqp.Annotations{"x-opt-rabbitmq-received-time": at.Add(5 * time.Millisecond)}},
		},
	} {
		if one.over10.Header == nil {
			one.over10.Header = header(nil)
		}
		prints091 := fingerprintOf(keeper.NewFingerprints(), &one.over091)
		require.Equal(t, prints091, fingerprintOf(keeper.NewFingerprints(), deliveryOf(&one.over10)), name)
		require.Empty(t, prints[prints091], name)
		prints[prints091] = name
	}
	m := read(keeper.NewFingerprints(), "foo.delay", deliveryOf(&amqp.Message{Annotations: amqp.Annotations{"x-death": []any{map[string]any{"queue": "foo.delay", "count": int64(2)}}, "x-cancel": []byte("\xff")}}))
	require.Zero(t, m.deaths, "a publisher's own")
	require.Equal(t, "\xff", m.target)
}
