package server

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/server/internal/deliveries"
)

func TestEveryPublishIsConfirmedOnce(t *testing.T) {
	var o deliveries.Outbox
	o.Init(func() {})
	var c confirms
	_, some := c.next(nil)
	assert.False(t, some, "nothing was published")
	for range 3 {
		c.published++
	}
	first, some := c.next([]int{1})
	assert.True(t, some)
	assert.Equal(t, confirmBatch{1, 3, []uint64{2}}, first)
	c.published++
	second, some := c.next(nil)
	assert.True(t, some)
	assert.Equal(t, confirmBatch{4, 4, nil}, second)
	_, some = c.next(nil)
	assert.False(t, some)
	confirmed, waiting := c.counts()
	assert.Equal(t, []uint64{0, 4}, []uint64{confirmed, waiting})
	assert.EqualValues(t, 2, c.confirm(first, &o, 7))
	assert.EqualValues(t, 1, c.confirm(second, &o, 7))
	confirmed, waiting = c.counts()
	assert.Equal(t, []uint64{3, 0}, []uint64{confirmed, waiting})
	assert.NotZero(t, o.Pending())
}

func TestClosedChannelIsNotConfirmedAnything(t *testing.T) {
	var o deliveries.Outbox
	o.Init(func() {})
	var c confirms
	c.published++
	b, _ := c.next(nil)
	c.close()
	assert.Zero(t, c.confirm(b, &o, 7))
	assert.Zero(t, o.Pending(), "its number may be in use again")
}
