package deliveries

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker"
	"curfew/broker/queue"
)

func TestRepliesAreLostWhereTooManyWait(t *testing.T) {
	var o Outbox
	o.Init(func() {})
	var d Deliveries
	d.Init(7, &o, new(Memory), false, func() string { return "" })
	assert.False(t, d.Reply("tag", &broker.Publication{Properties: []byte{0, 0}, Body: []byte("x")}))
	assert.NotZero(t, o.Pending())
	body := bytes.Repeat([]byte("x"), 1<<20)
	lost := false
	for range 17 {
		lost = d.Reply("tag", &broker.Publication{Properties: []byte{0, 0}, Body: body})
	}
	assert.True(t, lost)
	full := o.Pending()
	assert.True(t, d.Reply("tag", &broker.Publication{Properties: []byte{0, 0}, Body: []byte("x")}))
	assert.Equal(t, full, o.Pending())
}

// TestLapsedDeliveriesAreForgotten: with KeepLocks, those of a receiver that settles nothing take no memory. One that settles them later is told.
func TestLapsedDeliveriesAreForgotten(t *testing.T) {
	d, q := Deliveries{KeepLocks: true}, new(broker.Queue)
	for seq := range queue.Seq(100_000) {
		d.unacked.add(Unacked{Queue: q, Seq: seq + 1, locked: true})
		assert.True(t, d.Lapsed(q.ID, seq+1))
	}
	last := d.unacked.add(Unacked{Queue: q, Seq: 100_001, locked: true})
	assert.Equal(t, 1, d.Info().Unacked)
	assert.LessOrEqual(t, d.unacked.tags(), ringLarge)
	var b Batch
	assert.Error(t, d.SettleRange(&b, broker.Ack, 99_999, 99_999))
	assert.NoError(t, d.SettleRange(&b, broker.Ack, uint32(last-1), uint32(last-1)))
	assert.Error(t, d.SettleRange(&b, broker.Ack, uint32(last-2), uint32(last-1)))
}
