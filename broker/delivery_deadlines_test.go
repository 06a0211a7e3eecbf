package broker_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

func TestEachDueAndLook(t *testing.T) {
	x := newTestBroker(t, broker.Options{})
	q := x.queue("q", amqp.Table{"x-max-priority": 2})
	for range 3000 {
		x.publish("", "q", "other", "", nil)
	}
	p := amqp.Properties{Priority: 2, Expiration: "60000"}
	_, err := x.p.Add(&broker.Publication{RoutingKey: []byte("q"), Properties: p.Append(nil), Body: []byte("high")})
	assert.NoError(t, err)
	x.publish("", "q", "low", "60000", nil)
	x.p.Flush(nil)
	var bodies []string
	q.Messages.EachDue(func(d deadline.Ref) {
		m, ok := q.Messages.BrowseOne(queue.Seq(d.Seq), 3)
		assert.True(t, ok)
		assert.Equal(t, d, q.Messages.Ref(&m))
		bodies = append(bodies, string(m.Message.Body))
	})
	assert.Equal(t, []string{"hig", "low"}, bodies)
	first, ok := q.Messages.BrowseOne(1, -1)
	assert.True(t, ok)
	assert.Equal(t, "other", string(first.Message.Body), "of its priority, not of the highest")
	_, ok = q.Messages.BrowseOne(100_000, -1)
	assert.False(t, ok)
}
