package broker_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/policy"
	"curfew/broker/store"
)

// BenchmarkBacklog is a message, of all that are in one queue, that is given a time to live.
func BenchmarkBacklog(b *testing.B) {
	for name, persistent := range map[string]bool{"transient": false, "persistent": true} {
		b.Run(name, func(b *testing.B) {
			o := broker.Options{}
			if persistent {
				o.Store = store.Options{Dir: b.TempDir()}
			}
			br, err := broker.New(o)
			require.NoError(b, err)
			defer br.Close()
			vh, _ := br.VHost("/")
			_, err = vh.Queues.Declare(nil, "q", broker.QueueDeclare{Durable: true})
			require.NoError(b, err)
			p := vh.OwnPublisher()
			properties := amqp.Properties{DeliveryMode: 2}
			m := &broker.Publication{RoutingKey: []byte("q"), Properties: properties.Append(nil), Body: make([]byte, 100)}
			for range b.N {
				_, err := p.Add(m)
				require.NoError(b, err)
				if p.Pending() == 1024 {
					p.Flush(nil)
				}
			}
			p.Flush(nil)
			b.ResetTimer()
			_, done, err := vh.Policies.SetForBacklog(policy.User, policy.Policy{Name: "p", Pattern: ".", Definition: policy.Definition{"message-ttl": int64(3_600_000)}})
			require.NoError(b, err)
			require.Equal(b, b.N, done.Earlier)
		})
	}
}
