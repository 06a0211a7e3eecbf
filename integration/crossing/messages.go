package crossing

import (
	"strings"
	"time"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

var (
	longText = strings.Repeat("x", 300)
	instant  = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)
	anID     = amqp.UUID{0: 1, 15: 0xff}
)

// from10 are messages that a client of AMQP 1.0 sends.
var from10 = []struct {
	name    string
	message *amqp.Message
}{
	{"no header", with(nil, nil, nil, nil)},
	{"empty header", with(&amqp.MessageHeader{Priority: 4}, nil, nil, nil)},
	{"durable", with(&amqp.MessageHeader{Durable: true, Priority: 4}, nil, nil, nil)},
	{"priority", with(&amqp.MessageHeader{Durable: true, Priority: 7}, nil, nil, nil)},
	{"ttl", with(&amqp.MessageHeader{Durable: true, Priority: 4, TTL: time.Hour}, nil, nil, nil)},
	{"text ids", properties(&amqp.MessageProperties{MessageID: "a", CorrelationID: "b"})},
	{"number ids", properties(&amqp.MessageProperties{MessageID: uint64(7), CorrelationID: uint64(8)})},
	{"uuid ids", properties(&amqp.MessageProperties{MessageID: anID, CorrelationID: anID})},
	{"binary ids", properties(&amqp.MessageProperties{MessageID: []byte{1, 0xff}, CorrelationID: []byte("b")})},
	{"long ids", properties(&amqp.MessageProperties{MessageID: longText, CorrelationID: longText})},
	{"user-id", properties(&amqp.MessageProperties{UserID: []byte("guest")})},
	{"to and subject", properties(&amqp.MessageProperties{To: new("to"), Subject: new("subject")})},
	{"reply-to", properties(&amqp.MessageProperties{ReplyTo: new("/queues/q")})},
	{"long reply-to", properties(&amqp.MessageProperties{ReplyTo: &longText})},
	{"content type and encoding", properties(&amqp.MessageProperties{ContentType: new("text/plain"), ContentEncoding: new("gzip")})},
	{"creation-time", properties(&amqp.MessageProperties{CreationTime: &instant})},
	{"group", properties(&amqp.MessageProperties{GroupID: new("g"), GroupSequence: new(uint32(3)), ReplyToGroupID: new("r")})},
	{"long group-id", properties(&amqp.MessageProperties{GroupID: &longText})},
	{"another's user-id", properties(&amqp.MessageProperties{UserID: []byte("another")})},
	{"long user-id", properties(&amqp.MessageProperties{UserID: []byte(longText)})},
	{"annotations", with(nil, amqp.Annotations{"x-text": "t", "x-opt-number": int64(1), "x-list": []any{"a", int32(1)}, "x-map": map[string]any{"k": "v"}}, nil, nil)},
	{"another annotation", with(nil, amqp.Annotations{"other": "o"}, nil, nil)},
	{"x-basic-type", with(nil, amqp.Annotations{"x-basic-type": "t"}, nil, nil)},
	{"x-cc", with(nil, amqp.Annotations{"x-cc": []any{queueName + "-other"}}, nil, nil)},
	{"texts", with(nil, nil, map[string]any{"text": "t", "long": longText, "x-text": "x", "CC": "c", longText: "k"}, nil)},
	{"signed numbers", with(nil, nil, map[string]any{"i8": int8(-1), "i16": int16(-2), "i32": int32(-3), "i64": int64(-4)}, nil)},
	{"unsigned numbers", with(nil, nil, map[string]any{"u8": uint8(1), "u16": uint16(2), "u32": uint32(3), "u64": uint64(4)}, nil)},
	{"floating numbers", with(nil, nil, map[string]any{"f32": float32(1.5), "f64": 2.5}, nil)},
	{"other values", with(nil, nil, map[string]any{"bool": true, "null": nil, "binary": []byte{0xff}, "timestamp": instant, "symbol": amqp.Symbol("s")}, nil)},
	{"two data sections", &amqp.Message{Data: [][]byte{[]byte("a"), []byte("b")}}},
	{"value", &amqp.Message{Value: "v"}},
	{"map value", &amqp.Message{Value: map[string]any{"k": int64(1)}}},
	{"sequence", &amqp.Message{Sequence: [][]any{{"a", int64(1)}}}},
	{"empty data", &amqp.Message{Data: [][]byte{{}}}},
	{"data and footer", &amqp.Message{Data: [][]byte{[]byte("b")}, Footer: amqp.Annotations{"x-f": "f"}}},
	{"value and footer", &amqp.Message{Value: "v", Footer: amqp.Annotations{"x-f": "f"}}},
}

func with(h *amqp.MessageHeader, annotations amqp.Annotations, app map[string]any, p *amqp.MessageProperties) *amqp.Message {
	return &amqp.Message{Header: h, Annotations: annotations, ApplicationProperties: app, Properties: p, Data: [][]byte{[]byte("b")}}
}

func properties(p *amqp.MessageProperties) *amqp.Message { return with(nil, nil, nil, p) }

// from091 are messages that a client of AMQP 0-9-1 publishes.
var from091 = []struct {
	name       string
	publishing amqp091.Publishing
}{
	{"nothing", amqp091.Publishing{}},
	{"persistent", amqp091.Publishing{DeliveryMode: 2}},
	{"priority", amqp091.Publishing{Priority: 7}},
	{"expiration", amqp091.Publishing{Expiration: "3600000"}},
	{"text ids", amqp091.Publishing{MessageId: "a", CorrelationId: "b"}},
	{"uuid ids", amqp091.Publishing{MessageId: "urn:uuid:01000000-0000-0000-0000-0000000000ff", CorrelationId: "urn:uuid:01000000-0000-0000-0000-0000000000ff"}},
	{"plain uuid ids", amqp091.Publishing{MessageId: "01000000-0000-0000-0000-0000000000ff"}},
	{"reply-to", amqp091.Publishing{ReplyTo: "r"}},
	{"user-id and app-id", amqp091.Publishing{UserId: "guest", AppId: "a"}},
	{"content type and encoding", amqp091.Publishing{ContentType: "text/plain", ContentEncoding: "gzip"}},
	{"timestamp", amqp091.Publishing{Timestamp: instant}},
	{"type", amqp091.Publishing{Type: "t"}},
	{"texts", amqp091.Publishing{Headers: amqp091.Table{"text": "t", "long": longText, "x-text": "x"}}},
	{"no UTF-8", amqp091.Publishing{Headers: amqp091.Table{"text": "\xff"}}},
	{"numbers", amqp091.Publishing{Headers: amqp091.Table{"i8": int8(-1), "u8": uint8(1), "i16": int16(-2), "i32": int32(-3), "i64": int64(-4)}}},
	{"floating numbers", amqp091.Publishing{Headers: amqp091.Table{"f32": float32(1.5), "f64": 2.5}}},
	{"other values", amqp091.Publishing{Headers: amqp091.Table{"bool": true, "null": nil, "binary": []byte{0xff}, "timestamp": instant}}},
	{"lists and tables", amqp091.Publishing{Headers: amqp091.Table{"list": []any{"a"}, "table": amqp091.Table{"k": "v"}, "x-list": []any{"a", int32(1)}, "x-table": amqp091.Table{"k": "v"}}}},
	{"CC", amqp091.Publishing{Headers: amqp091.Table{"CC": []any{queueName + "-other"}}}},
	{"amqp-1.0 type", amqp091.Publishing{Type: "amqp-1.0", Body: []byte{0, 0x53, 0x77, 0xa1, 1, 'v'}}},
	{"empty", amqp091.Publishing{Body: []byte{}}},
	{"ids that are not UTF-8", amqp091.Publishing{MessageId: "\xff", CorrelationId: "\xfe"}},
	{"reply-to that is not UTF-8", amqp091.Publishing{ReplyTo: "\xff"}},
	{"app-id and type that are not UTF-8", amqp091.Publishing{AppId: "\xff", Type: "\xff"}},
	{"content type and encoding that are not UTF-8", amqp091.Publishing{ContentType: "\xff", ContentEncoding: "\xff"}},
	{"keys that are not UTF-8", amqp091.Publishing{Headers: amqp091.Table{"\xff": "a", "x-\xff": "b", "x-table": amqp091.Table{"\xff": "\xff"}}}},
}
