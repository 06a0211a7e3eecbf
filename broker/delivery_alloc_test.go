package broker_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

// fewAllocations is for 64 messages, of which a batch of dead letters takes ten to find its route. The race detector has
// the pool of steps forget some, which then grow again: so there are many.
const fewAllocations = 200.0

// TestDeliveryAndAckAllocateNothing: 64 messages are published, delivered and acked.
func TestDeliveryAndAckAllocateNothing(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", nil)
	k := &taker{prefetch: 64, silent: true}
	k.c.Sink = k
	require.NoError(t, q.Messages.Consume(&k.c))
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
		q.Messages.Settle(broker.Ack, held, &k.c)
	}
	for range 100 {
		batch()
	}
	assert.Less(t, testing.AllocsPerRun(100, batch), fewAllocations)
	assert.Equal(t, 64*201, k.total)
}

// TestExpiryAllocatesNothing: 64 messages come due and are dead-lettered to a consumer, or dropped. A subscriber gets each, with its
// trace context.
func TestExpiryAllocatesNothing(t *testing.T) {
	traced := amqp.Table{"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"}
	for name, c := range map[string]struct {
		args, headers amqp.Table
		told          int // of each
	}{
		"dead-lettered": {args: deadLettersToDLQ}, "dropped": {},
		"dead-lettered, traced": {args: deadLettersToDLQ, headers: traced, told: 1}, "dropped, traced": {headers: traced, told: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var now atomic.Int64
			now.Store(1_700_000_000_000_000_000)
			o, told := broker.Options{Clock: now.Load}, 0
			if c.told > 0 {
				o.Expiries = new(deadline.Stream)
				o.Expiries.Subscribe(deadline.WithTrace, func(batch []deadline.Expiry) {
					for i := range batch {
						if len(batch[i].Trace.Parent) == 55 && len(batch[i].Trace.State) == 3 {
							told++
						}
					}
				})
			}
			x := newTestBroker(t, o)
			q, dlq := x.queue("q", c.args), x.queue("dlq", nil)
			taken := new(taker)
			taken.c.Sink, taken.c.NoAck = discard{}, true
			require.NoError(t, dlq.Messages.Consume(&taken.c))
			taken.c.Wake()
			m := broker.Publication{RoutingKey: []byte("q"), Properties: (&amqp.Properties{Expiration: "1", Headers: c.headers}).Append(nil), Body: make([]byte, 100)}
			refs, results := make([]deadline.Ref, 64), []deadline.Answer(nil)
			seq, expired := uint64(0), 0
			batch := func() {
				for i := range refs {
					_, err := x.p.Add(&m)
					require.NoError(t, err)
					seq++
					refs[i] = deadline.Ref{Deadline: deadline.Instant(now.Load()/1e3 + 1000), Queue: q.ID, Seq: seq}
				}
				x.p.Flush(nil)
				now.Add(2e6)
				results = x.b.Deadlines().Expire(refs, deadline.Eager, true, results[:0])
				for _, r := range results {
					if r.Outcome == deadline.Expired {
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
			require.NoError(t, x.b.Forwarded(t.Context()))
			assert.Equal(t, c.told*expired, told)
		})
	}
}
