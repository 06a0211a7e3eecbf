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
		assert.Nil(t, nextOf(&l))
		time.Sleep(heldFor)
		synctest.Wait()
		assert.Same(t, &q, nextOf(&l))
		assert.Empty(t, l.held)
		assert.Nil(t, nextOf(&l))
	})
}

func nextOf(l *VHostLetters) *delivery.Letters {
	q, _ := l.next(false)
	return q
}

// A queue that has had no turn since it had letters waits neither for all that have many, nor for long turns of these.
func TestFewLettersDoNotWaitForMany(t *testing.T) {
	var l VHostLetters
	l.Init(new(Forwarder), nil)
	many := make([]delivery.Letters, 2000)
	for i := range many {
		l.add(&many[i])
	}
	for i := range many {
		q, most := l.next(false)
		assert.Same(t, &many[i], q)
		if i == 0 {
			assert.LessOrEqual(t, most*len(many), roundLetters)
		}
	}
	for i := range many {
		l.rotate(&l.sources, &many[i])
	}
	var few delivery.Letters
	l.add(&few)
	first, second := nextOf(&l), nextOf(&l)
	assert.True(t, first == &few || second == &few)
	assert.NotSame(t, first, second, "the others have turns, too")
	for nextOf(&l) != nil {
	}
	l.add(&few)
	_, most := l.next(false)
	assert.Equal(t, turnLetters, most, "one alone has long turns")
	assert.False(t, l.working, "whoever helps is not the goroutine")
}

// A turn begins no letter after its time, but always one.
func TestTurnIsBoundedByTime(t *testing.T) {
	var f Forwarder
	f.Init(Options{})
	at := time.Now()
	f.now = func() time.Time { return at }
	b := f.budget(turnLetters)
	begun := 0
	for ; b.left(); begun++ {
		b.letters--
		b.begun = true
		at = at.Add(turnTime / 4)
	}
	assert.Equal(t, 4, begun)
	b = f.budget(turnLetters)
	at = at.Add(time.Second)
	assert.True(t, b.left(), "one is begun")
}
