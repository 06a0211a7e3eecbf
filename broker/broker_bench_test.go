package broker_test

import (
	"cmp"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
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
	q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{})
	require.NoError(b, err)
	require.NoError(b, vh.Bind(nil, broker.Binding{Source: "amq.topic", Destination: "q", RoutingKey: "a.*"}))
	c := &broker.Consumer{Tag: "c", NoAck: true, Sink: discard{}}
	require.NoError(b, q.Messages.Consume(c))
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

// BenchmarkPublishDeliverAck is one message's way through a queue: published in
// batches of 64, handed to one of the consumers, acked in batches.
func BenchmarkPublishDeliverAck(b *testing.B) {
	for _, x := range []struct {
		name      string
		consumers int
		durable   bool
		args      amqp.Table
	}{
		{"one consumer", 1, false, nil},
		{"eight consumers", 8, false, nil},
		{"quorum", 1, true, amqp.Table{"x-queue-type": "quorum"}},
	} {
		b.Run(x.name, func(b *testing.B) {
			br, err := broker.New(broker.Options{})
			require.NoError(b, err)
			defer br.Close()
			vh, _ := br.VHost("/")
			q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: x.durable, Args: x.args})
			require.NoError(b, err)
			takers := make([]*taker, x.consumers)
			for i := range takers {
				k := &taker{prefetch: 16, silent: true}
				k.c.Sink, takers[i] = k, k
				require.NoError(b, q.Messages.Consume(&k.c))
				k.c.Wake()
			}
			p := vh.NewPublisher("guest")
			m := &broker.Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{}).Append(nil), Body: make([]byte, 100)}
			// ackAll returns how many messages were delivered so far.
			ackAll := func() (total int) {
				for _, k := range takers {
					held := k.held
					k.held = k.held[:0]
					q.Messages.Settle(broker.Ack, held, &k.c)
				}
				for _, k := range takers {
					total += k.total
				}
				return total
			}
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, err := p.Add(m); err != nil {
					b.Fatal(err)
				}
				if n%64 == 63 {
					p.Flush(nil)
					for ackAll() < n+1 {
					}
				}
			}
		})
	}
}

// BenchmarkManyKeys is a publisher whose messages go to as many queues in turn, by the default exchange and by another.
func BenchmarkManyKeys(b *testing.B) {
	for _, exchange := range []string{"", "amq.direct"} {
		for _, keys := range []int{2, 1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", cmp.Or(exchange, "default"), keys), func(b *testing.B) {
				br, err := broker.New(broker.Options{})
				require.NoError(b, err)
				defer br.Close()
				vh, _ := br.VHost("/")
				m := &broker.Publication{Exchange: []byte(exchange), Properties: []byte{0, 0}, Body: make([]byte, 100)}
				names := make([][]byte, keys)
				for i := range names {
					names[i] = fmt.Appendf(nil, "q%d", i)
					q, err := vh.Queues.Declare(nil, string(names[i]), broker.QueueDeclare{})
					require.NoError(b, err)
					if exchange != "" {
						require.NoError(b, vh.Bind(nil, broker.Binding{Source: exchange, Destination: string(names[i]), RoutingKey: string(names[i])}))
					}
					c := &broker.Consumer{Tag: "c", NoAck: true, Sink: discard{}}
					require.NoError(b, q.Messages.Consume(c))
					c.Wake()
				}
				p := vh.NewPublisher("guest")
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					m.RoutingKey = names[i%keys]
					if _, err := p.Add(m); err != nil {
						b.Fatal(err)
					}
					if i%64 == 63 {
						p.Flush(nil)
					}
				}
				p.Flush(nil)
			})
		}
	}
}
