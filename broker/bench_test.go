package broker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
)

// discard is a consumer that takes everything.
type discard struct{}

func (discard) Pull(_ *broker.Consumer, src *broker.Source, most int) (taken int, more bool) {
	var d broker.Delivery
	for taken < most && src.Next(&d) {
		taken++
	}
	return taken, true
}

func (discard) Cancelled(*broker.Consumer) {}

// BenchmarkPublishDeliver: one message through exchange, queue and consumer, 64 to
// a batch, as a connection's reader does it.
func BenchmarkPublishDeliver(b *testing.B) {
	br, err := broker.New(broker.Options{})
	require.NoError(b, err)
	defer br.Close()
	vh, _ := br.VHost("/")
	q, err := vh.DeclareQueue(nil, "q", broker.QueueDeclare{})
	require.NoError(b, err)
	require.NoError(b, vh.Bind(nil, broker.Binding{Source: "amq.topic", Destination: "q", RoutingKey: "a.*"}))
	c := &broker.Consumer{Tag: "c", NoAck: true, Sink: discard{}}
	require.NoError(b, q.Consume(c))
	c.Wake()
	p := vh.NewPublisher("guest")
	m := &broker.Publication{Exchange: []byte("amq.topic"), RoutingKey: []byte("a.b"), Properties: []byte{0, 0}, Body: make([]byte, 128)}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := p.Add(m); err != nil {
			b.Fatal(err)
		}
		if i%64 == 63 {
			p.Flush(nil)
		}
	}
	p.Flush(nil)
}
