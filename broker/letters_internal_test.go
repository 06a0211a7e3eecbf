package broker

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/queue"
)

// Compaction finds letters that wait, wherever they stand in line, and leaves those alone that
// a turn is at, or that never stood in the queue.
func TestRelocatedLetters(t *testing.T) {
	var l letterLine
	moves := func(seq, old, moved uint64) bool {
		terms, ok := l.relocate(queue.Seq(seq), old, moved)
		if ok {
			assert.EqualValues(t, seq, terms.ExpiresAt)
		}
		return ok
	}
	add := func(seq uint64, queued bool) {
		l.add(&letter{settled: queue.Settled{Seq: queue.Seq(seq), Message: queue.Message{Pos: 100 + seq, ExpiresAt: int64(seq)}}, queued: queued})
	}
	assert.False(t, moves(1, 101, 201), "none waits")
	for seq := range uint64(10) {
		add(seq, seq != 9)
	}
	l.moving = 2
	assert.False(t, moves(1, 101, 201), "a turn is at it")
	assert.True(t, moves(2, 102, 202))
	assert.False(t, moves(2, 102, 302), "it is not there any more")
	assert.False(t, moves(9, 109, 209), "it was refused by the queue")
	l.moving = 0
	l.pass(7)
	assert.False(t, moves(2, 202, 302), "it has gone")
	add(11, true)
	for _, seq := range []uint64{7, 8, 11} {
		assert.True(t, moves(seq, 100+seq, 200+seq), seq)
	}
	l.pass(4)
	assert.Nil(t, l.index)
	add(7, true)
	assert.True(t, moves(7, 107, 207))
}
