package forward

import (
	"curfew/broker/internal/delivery"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A queue whose letters wait for memory waits once, however many come meanwhile, and not for longer.
func TestQueueWaitsForMemoryOnce(t *testing.T) {
	var q delivery.Letters
	f := &Forwarder{wake: make(chan struct{}, 1), hold: time.NewTimer(time.Hour)}
	var l VHostLetters
	l.Init(f, nil)
	for range 3 {
		l.waitForMemory(&q)
		l.add(&q)
	}
	assert.Equal(t, []*delivery.Letters{&q}, l.held)
	_, next := f.next()
	assert.Nil(t, next)
	f.retryHeld()
	_, next = f.next()
	assert.Same(t, &q, next)
	assert.Empty(t, l.held)
	assert.Empty(t, f.held)
}
