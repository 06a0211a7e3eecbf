package broker_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/store"
)

// BenchmarkDeclareDurable is a durable queue that is declared and deleted, each on disk,
// beside the given number of others; by one at a time and by ten.
func BenchmarkDeclareDurable(b *testing.B) {
	for _, others := range []int{1000, 10_000} {
		vh := crowded(b, others)
		for _, clients := range []int{1, 10} {
			b.Run(fmt.Sprintf("others=%d/clients=%d", others, clients), func(b *testing.B) {
				var all sync.WaitGroup
				for i := range clients {
					all.Go(func() { declareAndDelete(b, vh, fmt.Sprint("new-", i), b.N/clients) })
				}
				all.Wait()
			})
		}
	}
}

// crowded is a virtual host on disk with n durable queues.
func crowded(b *testing.B, n int) *broker.VHost {
	br, err := broker.New(broker.Options{Store: store.Options{Dir: b.TempDir()}})
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, br.Close()) })
	vh, _ := br.VHost("/")
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			for j := i; j < n; j += 100 {
				_, err := vh.Queues.Declare(nil, fmt.Sprint("queue-", j), broker.QueueDeclare{Durable: true})
				require.NoError(b, err)
			}
		})
	}
	all.Wait()
	return vh
}

func declareAndDelete(b *testing.B, vh *broker.VHost, name string, times int) {
	for range times {
		if _, err := vh.Queues.Declare(nil, name, broker.QueueDeclare{Durable: true}); err != nil {
			b.Error(err)
			return
		}
		if _, err := vh.Queues.Delete(nil, name, broker.QueueDeletion{}); err != nil {
			b.Error(err)
			return
		}
	}
}
