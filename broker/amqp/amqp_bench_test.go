package amqp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// hotPath is what a broker does for every message, with the messages that clients send
// most: persistent, 100 octets, with an expiration or with headers.
func hotPath() map[string]func() {
	var (
		exchange, key = []byte("orders"), []byte("orders.created.eu")
		body          = make([]byte, 100)
		plain         = (&Properties{DeliveryMode: 2, Expiration: "60000"}).Append(nil)
		withHeaders   = (&Properties{
			ContentType: "application/json", DeliveryMode: 2, MessageID: "0123456789abcdef",
			Headers: Table{"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "retries": int32(3), "x": true},
		}).Append(nil)
		publish = AppendMethod(nil, 1, &BasicPublish{Exchange: string(exchange), RoutingKey: string(key)})
		content = AppendContent(nil, 1, plain, body, 131072)
		ack     = AppendAck(nil, 1, 7, false)[frameHeaderSize:][:settlePayload]
		out     = make([]byte, 0, 4096)
	)
	payload := publish[frameHeaderSize : len(publish)-1]
	header := content[frameHeaderSize:][:contentHeaderSize+len(plain)]
	view, _ := ViewProperties(withHeaders)
	return map[string]func(){
		"ParseFrame":         func() { _, _, _ = ParseFrame(publish, 131072) },
		"PeekMethod":         func() { _, _ = PeekMethod(payload) },
		"ParsePublish":       func() { _, _ = ParsePublish(payload) },
		"ParseContentHeader": func() { _, _ = ParseContentHeader(header) },
		"ViewProperties":     func() { _, _ = ViewProperties(plain) },
		"ViewPropertiesFull": func() { _, _ = ViewProperties(withHeaders) },
		"ValidateTable":      func() { _ = ValidateTable(view.Headers, Limits{}) },
		"ParseAck":           func() { _, _, _ = ParseAck(ack) },
		"ParseNack":          func() { _, _, _, _ = ParseNack(ack) },
		"ParseReject":        func() { _, _, _ = ParseReject(ack) },
		"AppendAck":          func() { out = AppendAck(out[:0], 1, 7, true) },
		"AppendNack":         func() { out = AppendNack(out[:0], 1, 7, true, false) },
		"AppendDeliver":      func() { out = AppendDeliver(out[:0], 1, "ctag-1", 7, false, exchange, key) },
		"AppendGetOk":        func() { out = AppendGetOk(out[:0], 1, 7, false, exchange, key, 9) },
		"AppendReturn":       func() { out = AppendReturn(out[:0], 1, NoRoute, "NO_ROUTE", exchange, key) },
		"AppendContent":      func() { out = AppendContent(out[:0], 1, plain, body, 131072) },
		"AppendHeartbeat":    func() { out = AppendHeartbeat(out[:0]) },
	}
}

func TestHotPathDoesNotAllocate(t *testing.T) {
	for name, run := range hotPath() {
		require.Zero(t, testing.AllocsPerRun(100, run), name)
	}
}

func BenchmarkHotPath(b *testing.B) {
	for name, run := range hotPath() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				run()
			}
		})
	}
}

// One message in and out: everything that is spent on its octets.
func BenchmarkMessage(b *testing.B) {
	raw := (&Properties{DeliveryMode: 2, Expiration: "60000"}).Append(nil)
	in := AppendMethod(nil, 1, &BasicPublish{Exchange: "orders", RoutingKey: "orders.created.eu"})
	in = AppendContent(in, 1, raw, make([]byte, 100), 131072)
	out := make([]byte, 0, 4096)
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		f, n, _ := ParseFrame(in, 131072)
		id, _ := PeekMethod(f.Payload)
		p, _ := ParsePublish(f.Payload)
		f, m, _ := ParseFrame(in[n:], 131072)
		h, _ := ParseContentHeader(f.Payload)
		v, err := ViewProperties(h.Properties)
		f, _, _ = ParseFrame(in[n+m:], 131072)
		if id != BasicPublishID || err != nil || v.Has&HasExpiration == 0 {
			b.Fatal(id, err)
		}
		out = AppendDeliver(out[:0], 1, "ctag-1", 7, false, p.Exchange, p.RoutingKey)
		out = AppendContent(out, 1, h.Properties, f.Payload, 131072)
	}
}

func BenchmarkParseMethod(b *testing.B) {
	frame := AppendMethod(nil, 1, &QueueDeclare{Queue: "orders", Durable: true, Arguments: args})
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ParseMethod(frame[frameHeaderSize:len(frame)-1], Limits{})
	}
}

func BenchmarkParseTable(b *testing.B) {
	raw := AppendTable(nil, everyType())
	b.ReportAllocs()
	for b.Loop() {
		_, _, _ = ParseTable(raw, Limits{})
	}
}
