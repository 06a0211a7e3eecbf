package deliveries

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker"
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
