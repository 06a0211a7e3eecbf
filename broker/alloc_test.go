package broker_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
)

// fewAllocations is for 64 messages, of which a batch of dead letters takes ten to find its route. The race detector has
// the pool of steps forget some, which then grow anew: hence so many.
const fewAllocations = 200.0

// TestDeliveryAndAckAllocateNothing: 64 messages are published, delivered and acked.
func TestDeliveryAndAckAllocateNothing(t *testing.T) {
	x := newBench(t, broker.Options{})
	q := x.queue("q", nil)
	k := &taker{prefetch: 64, silent: true}
	k.c.Sink = k
	require.NoError(t, q.Consume(&k.c))
	k.c.Wake()
	m := broker.Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{}).Append(nil), Body: make([]byte, 100)}
	batch := func() {
		for range 64 {
			_, err := x.p.Add(&m)
			require.NoError(t, err)
		}
		x.p.Flush(nil)
		held := k.held
		k.held = k.held[:0]
		q.Settle(broker.Ack, held, &k.c)
	}
	for range 100 {
		batch()
	}
	assert.Less(t, testing.AllocsPerRun(100, batch), fewAllocations)
	assert.Equal(t, 64*201, k.total)
}

// TestExpiryAllocatesNothing: 64 messages come due and are dead-lettered to a consumer, or dropped.
func TestExpiryAllocatesNothing(t *testing.T) {
	for name, args := range map[string]amqp.Table{"dead-lettered": deadLettersToDLQ, "dropped": nil} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			now.Store(1_700_000_000_000_000_000)
			x := newBench(t, broker.Options{Clock: now.Load})
			q, dlq := x.queue("q", args), x.queue("dlq", nil)
			taken := &taker{prefetch: 1 << 30, silent: true}
			taken.c.Sink, taken.c.NoAck = discard{}, true
			require.NoError(t, dlq.Consume(&taken.c))
			taken.c.Wake()
			m := broker.Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{Expiration: "1"}).Append(nil), Body: make([]byte, 100)}
			refs, results := make([]broker.MessageRef, 64), []broker.ExpireResult(nil)
			seq, expired := uint64(0), 0
			batch := func() {
				for i := range refs {
					_, err := x.p.Add(&m)
					require.NoError(t, err)
					seq++
					refs[i] = broker.MessageRef{Deadline: now.Load()/1e6 + 1, Queue: q.ID(), Seq: seq}
				}
				x.p.Flush(nil)
				now.Add(2e6)
				results = x.b.Expire(refs, results[:0])
				for _, r := range results {
					if r.Outcome == broker.Expired {
						expired++
					}
				}
			}
			batch()
			require.Equal(t, 64, expired)
			for range 100 {
				batch()
			}
			assert.Less(t, testing.AllocsPerRun(100, batch), fewAllocations)
			assert.Equal(t, 64*202, expired)
		})
	}
}
