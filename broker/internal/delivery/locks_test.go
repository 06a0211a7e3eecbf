package delivery

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// However long one message is held, what was settled meanwhile costs nothing, and
// in a steady flow nothing is allocated.
func TestLocksForgetWhatWasSettled(t *testing.T) {
	var l lockLine
	assert.True(t, l.add(lock{seq: 1, until: 100}))
	next := queue.Seq(2)
	flow := func() {
		for range 10_000 {
			l.add(lock{seq: next, until: 200})
			l.release(next)
			next++
		}
	}
	flow()
	assert.Zero(t, testing.AllocsPerRun(10, flow))
	assert.LessOrEqual(t, len(l.line), 2*locksSlack)
	assert.Equal(t, queue.Seq(1), l.oldest().seq)
	l.add(lock{seq: 1, until: 300})
	assert.Equal(t, deadline.Instant(300), l.oldest().until, "delivered again: the new lock counts")
	l.release(1)
	assert.Nil(t, l.oldest())
	assert.True(t, l.add(lock{seq: next, until: 400}))
}
