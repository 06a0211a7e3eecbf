package deadline_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadline"
)

func TestEverySubscriberIsToldOnce(t *testing.T) {
	var s deadline.Stream
	assert.False(t, s.Watched())
	assert.Equal(t, deadline.Basic, s.Needs())
	s.Publish(make([]deadline.Expiry, 1))

	var told []string
	s.Subscribe(deadline.WithTrace, func(batch []deadline.Expiry) { told = append(told, "a "+batch[0].Queue) })
	s.Subscribe(deadline.Basic, func(batch []deadline.Expiry) { told = append(told, "b "+batch[0].Queue) })
	assert.True(t, s.Watched())
	assert.Equal(t, deadline.WithTrace, s.Needs(), "the most that anybody needs")
	s.Publish(nil)
	s.Publish([]deadline.Expiry{{Queue: "q"}})
	assert.Equal(t, []string{"a q", "b q"}, told)
}
