package deliveries

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// deferring is a channel whose transaction has n acks of messages with a lock.
func deferring(t testing.TB, q *broker.Queue, n int) *Deliveries {
	d := new(Deliveries)
	for seq := range queue.Seq(n) {
		d.unacked.add(Unacked{Queue: q, Seq: seq + 1, locked: true})
	}
	require.NoError(t, d.Defer(broker.Ack, 0, true, amqp.BasicAckID))
	return d
}

// TestLockOfADeferredSettlementLapses: the commit is refused, and after a rollback the tag says that the message is gone. One that was
// delivered again on the same channel counts on its own.
func TestLockOfADeferredSettlementLapses(t *testing.T) {
	q := new(broker.Queue)
	d := deferring(t, q, 3)
	assert.False(t, d.Lapsed(q.ID, 4))
	assert.False(t, d.Lapsed(q.ID+1, 2), "of another queue")
	assert.True(t, d.Lapsed(q.ID, 2))
	assert.False(t, d.Lapsed(q.ID, 2), "it has lapsed")
	again := d.unacked.add(Unacked{Queue: q, Seq: 2, locked: true})
	require.NoError(t, d.Defer(broker.Ack, again, false, amqp.BasicAckID))
	_, err := d.TakeDeferred()
	assert.ErrorContains(t, err, "the lock on delivery tag 2 has lapsed")
	assert.True(t, d.Lapsed(q.ID, 2))
	d.PutBackDeferred()
	for tag, want := range map[uint64]queue.Seq{1: 1, 2: 0, 3: 3, again: 0} {
		m, ok := d.unacked.take(tag)
		assert.True(t, ok)
		assert.Equal(t, want, m.Seq)
	}
	assert.False(t, d.Lapsed(q.ID, 1), "nothing is deferred")
}

// BenchmarkDeferredLocksLapse: each costs the same, however many are deferred.
// What takes long with many settlements leaves the lock to others: a queue that delivers to the channel waits for it.
func TestManyDeferredLeaveTheLock(t *testing.T) {
	const n = 100_000
	q := new(broker.Queue)
	for _, c := range []struct {
		name string
		do   func(*Deliveries)
		done func(*Deliveries) int
	}{
		{"defer", func(d *Deliveries) { assert.NoError(t, d.Defer(broker.Ack, 0, true, amqp.BasicAckID)) }, func(d *Deliveries) int { return n - d.unacked.count }},
		{"roll back", (*Deliveries).PutBackDeferred, func(d *Deliveries) int { return d.unacked.count }},
		{"commit", func(d *Deliveries) {
			runs, err := d.TakeDeferred()
			assert.NoError(t, err)
			assert.Len(t, runs[0].Seqs, n)
		}, func(d *Deliveries) int { return int(d.counts.Acked) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for between := 0; between == 0; { // without a lock in between it never ends
				d := new(Deliveries)
				for seq := range queue.Seq(n) {
					d.unacked.add(Unacked{Queue: q, Seq: seq + 1, locked: true})
				}
				if c.name == "roll back" || c.name == "commit" {
					require.NoError(t, d.Defer(broker.Ack, 0, true, amqp.BasicAckID))
				}
				ended, looks := make(chan struct{}), make(chan int)
				go func() {
					seen := 0
					for {
						select {
						case <-ended:
							looks <- seen
							return
						default:
						}
						d.mu.Lock()
						if at := c.done(d); at > 0 && at < n {
							seen++
						}
						d.mu.Unlock()
					}
				}()
				c.do(d)
				close(ended)
				between = <-looks
			}
		})
	}
}

func BenchmarkDeferredLocksLapse(b *testing.B) {
	for _, n := range []int{1 << 12, 1 << 14, 1 << 16} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			q := new(broker.Queue)
			for b.Loop() {
				b.StopTimer()
				d := deferring(b, q, n)
				b.StartTimer()
				for seq := range queue.Seq(n) {
					d.Lapsed(q.ID, seq+1)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/lock")
		})
	}
}
