package server

import (
	"testing"

	"curfew/broker/amqp"
	"curfew/broker/server/internal/deliveries"
)

func BenchmarkAssembly(b *testing.B) {
	method := amqp.AppendMethod(nil, 1, &amqp.BasicPublish{RoutingKey: "queue"})
	f, _, err := amqp.ParseFrame(method, 1<<17)
	if err != nil {
		b.Fatal(err)
	}
	header := []byte{0, 60, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0}
	body := make([]byte, 1024)
	a, u := new(assembly), new(deliveries.Memory)
	b.ReportAllocs()
	for b.Loop() {
		_ = a.begin(f.Payload)
		_, _ = a.add(amqp.Frame{Type: amqp.FrameHeader, Payload: header}, 1<<20, u)
		m, err := a.add(amqp.Frame{Type: amqp.FrameBody, Payload: body}, 1<<20, u)
		if err != nil || m == nil {
			b.Fatal(err)
		}
		a.release(u)
	}
}
