package forward

import (
	"curfew/broker/internal/delivery"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A queue whose letters wait for memory waits once, however many come meanwhile, and not for longer.
func TestQueueWaitsForMemoryOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q delivery.Letters
		var l VHostLetters
		l.Init(new(Forwarder), nil)
		for range 3 {
			l.waitForMemory(&q)
			l.add(&q)
		}
		assert.Equal(t, []*delivery.Letters{&q}, l.held)
		assert.Nil(t, l.next())
		time.Sleep(heldFor)
		synctest.Wait()
		assert.Same(t, &q, l.next())
		assert.Empty(t, l.held)
		assert.Nil(t, l.next())
	})
}

// A turn begins no letter after its time, but always one.
func TestTurnIsBoundedByTime(t *testing.T) {
	var f Forwarder
	f.Init(Options{})
	at := time.Now()
	f.now = func() time.Time { return at }
	b := f.budget()
	begun := 0
	for ; b.left(); begun++ {
		b.letters--
		at = at.Add(turnTime / 4)
	}
	assert.Equal(t, 4, begun)
	b = f.budget()
	at = at.Add(time.Second)
	assert.True(t, b.left(), "one is begun")
}
