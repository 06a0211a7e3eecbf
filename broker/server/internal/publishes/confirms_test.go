package publishes

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/server/internal/outbox"
)

func TestEveryPublishIsConfirmedOnce(t *testing.T) {
	var o outbox.Outbox
	o.Init(func() {})
	var c Confirms
	_, some := c.Next(nil)
	assert.False(t, some, "nothing was published")
	for range 3 {
		c.Publish()
	}
	first, some := c.Next([]int{1})
	assert.True(t, some)
	assert.Equal(t, Batch{1, 3, []uint64{2}}, first)
	c.Publish()
	second, some := c.Next(nil)
	assert.True(t, some)
	assert.Equal(t, Batch{4, 4, nil}, second)
	_, some = c.Next(nil)
	assert.False(t, some)
	confirmed, waiting := c.Counts()
	assert.Equal(t, []uint64{0, 4}, []uint64{confirmed, waiting})
	assert.EqualValues(t, 2, c.Confirm(first, &o, 7))
	assert.EqualValues(t, 1, c.Confirm(second, &o, 7))
	confirmed, waiting = c.Counts()
	assert.Equal(t, []uint64{3, 0}, []uint64{confirmed, waiting})
	assert.NotZero(t, o.Pending())
}

func TestClosedChannelIsNotConfirmedAnything(t *testing.T) {
	var o outbox.Outbox
	o.Init(func() {})
	var c Confirms
	c.Publish()
	b, _ := c.Next(nil)
	c.Close()
	assert.Zero(t, c.Confirm(b, &o, 7))
	assert.Zero(t, o.Pending(), "its number may be in use again")
}
