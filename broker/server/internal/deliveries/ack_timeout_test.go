package deliveries

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker"
	"curfew/broker/deadline"
)

func TestOverdueLooksAtSomeUnderOneLock(t *testing.T) {
	const patient = 2*endAtOnce + 1
	now := deadline.Instant(1).AddMillis(1000)
	d := Deliveries{consumers: map[string]*Consumer{}}
	for tag, timeout := range map[string]int64{"patient": 5000, "hasty": 500} {
		d.consumers[tag] = &Consumer{Queue: new(broker.Queue), Consumer: broker.Consumer{TimeoutMillis: timeout}}
	}
	add := func(consumer string, at deadline.Instant) uint64 {
		c := d.consumers[consumer]
		return d.unacked.add(Unacked{Queue: c.Queue, Seq: 1, Consumer: c, At: at})
	}
	for range patient {
		add("patient", 1)
	}
	shortest := d.shortestTimeout(0)
	assert.EqualValues(t, 500, shortest)
	timeout, next, more := d.overdueStep(1, now, 0, shortest)
	assert.Zero(t, timeout)
	assert.True(t, more)
	assert.EqualValues(t, endAtOnce+1, next)
	assert.Zero(t, d.Overdue(now, 0))

	late := add("hasty", 1)
	assert.EqualValues(t, 500, d.Overdue(now, 0), "behind all that may stay longer")
	d.unacked.take(late)
	add("hasty", now)
	assert.Zero(t, d.Overdue(now, 0), "it is young")
	d.closed = true
	assert.Zero(t, d.Overdue(now.AddMillis(5000), 0), "the channel is closing")
}
