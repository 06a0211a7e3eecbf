package broker_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/store"
)

// BenchmarkDueTogether is a message of 50,000 that are due in one instant and go to a consumed
// dead-letter queue, from the first Expire until the last has arrived.
func BenchmarkDueTogether(b *testing.B) {
	const due = 50_000
	for name, persistent := range map[string]bool{"transient": false, "persistent": true} {
		b.Run(name, func(b *testing.B) {
			var now atomic.Int64
			now.Store(1_700_000_000_000_000_000)
			o := broker.Options{Clock: now.Load}
			if persistent {
				o.Store = store.Options{Dir: b.TempDir()}
			}
			br, err := broker.New(o)
			require.NoError(b, err)
			defer br.Close()
			vh, _ := br.VHost("/")
			q, err := vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true, Args: deadLettersToDLQ})
			require.NoError(b, err)
			dlq, err := vh.Queues.Declare(nil, "dlq", broker.QueueDeclare{Durable: true})
			require.NoError(b, err)
			c := &broker.Consumer{Tag: "c", NoAck: true, Sink: discard{}}
			require.NoError(b, dlq.Messages.Consume(c))
			c.Wake()
			p := vh.OwnPublisher()
			properties := amqp.Properties{Expiration: "1", DeliveryMode: 1}
			if persistent {
				properties.DeliveryMode = 2
			}
			m := &broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil), Body: make([]byte, 100)}
			refs, results := make([]deadline.Ref, 0, due), []deadline.Answer(nil)
			seq := uint64(0)
			for n := 0; n < b.N; n += due {
				b.StopTimer()
				refs = refs[:0]
				for range due {
					_, err := p.Add(m)
					require.NoError(b, err)
					seq++
					refs = append(refs, deadline.Ref{Deadline: deadline.Instant(now.Load()/1e3 + 1000), Queue: q.ID, Seq: seq})
					if p.Pending() == 1024 {
						p.Flush(nil)
					}
				}
				p.Flush(nil)
				done := make(chan error, 1)
				br.Commit(func(err error) { done <- err })
				require.NoError(b, <-done)
				now.Add(2e6)
				b.StartTimer()
				for i := 0; i < due; i += 1024 {
					results = br.Deadlines().Expire(refs[i:min(i+1024, due)], deadline.Eager, true, results[:0])
				}
				require.NoError(b, br.Forwarded(b.Context()))
			}
		})
	}
}
