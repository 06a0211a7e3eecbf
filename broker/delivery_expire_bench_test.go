package broker_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

// BenchmarkExpire is one message that is published, comes due and is dead-lettered to
// a consumer, or dropped; 256 at a time, as the monitor fires them.
func BenchmarkExpire(b *testing.B) {
	for name, args := range map[string]amqp.Table{"dead-lettered": deadLettersToDLQ, "dropped": nil} {
		for kind, headers := range map[string]amqp.Table{"plain": nil, "with headers": {"trace": "0123456789"}} {
			b.Run(name+", "+kind, func(b *testing.B) {
				var now atomic.Int64
				now.Store(1_700_000_000_000_000_000)
				br, err := broker.New(broker.Options{Clock: now.Load})
				require.NoError(b, err)
				defer br.Close()
				vh, _ := br.VHost("/")
				q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Args: args})
				require.NoError(b, err)
				dlq, err := vh.Queues.Declare(nil, "dlq", broker.QueueDeclare{})
				require.NoError(b, err)
				c := &broker.Consumer{Tag: "c", NoAck: true, Sink: discard{}}
				require.NoError(b, dlq.Messages.Consume(c))
				c.Wake()
				p := vh.NewPublisher("guest")
				properties := (&amqp.Properties{Expiration: "1", Headers: headers}).Append(nil)
				m := &broker.Publication{RoutingKey: []byte("q"), Properties: properties, Body: make([]byte, 100)}
				refs, results := make([]deadline.Ref, 0, 256), []deadline.Answer(nil)
				b.ReportAllocs()
				for seq := uint64(1); b.Loop(); seq++ {
					if _, err := p.Add(m); err != nil {
						b.Fatal(err)
					}
					refs = append(refs, deadline.Ref{Deadline: deadline.Instant(now.Load()/1e3 + 1000), Queue: q.ID, Seq: seq})
					if len(refs) == cap(refs) {
						p.Flush(nil)
						now.Add(2e6)
						results = br.Deadlines().Expire(refs, deadline.Eager, true, results[:0])
						refs = refs[:0]
					}
				}
				p.Flush(nil)
			})
		}
	}
}
