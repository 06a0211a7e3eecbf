package delivery

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// Compaction finds letters that wait, wherever they stand in line, and leaves those alone that
// a turn is moving, or that never stood in the queue.
func TestRelocatedLetters(t *testing.T) {
	l := Letters{Retained: new(Retained)}
	moves := func(seq, old, moved uint64) bool {
		terms, ok := l.RelocateLocked(queue.Seq(seq), old, moved)
		if ok {
			assert.EqualValues(t, seq, terms.ExpiresAt)
		}
		return ok
	}
	add := func(seq uint64, queued bool) {
		l.line.add(&Letter{Settled: queue.Settled{Seq: queue.Seq(seq), Message: queue.Message{Pos: 100 + seq, ExpiresAt: deadline.Instant(seq)}}, Queued: queued})
	}
	assert.False(t, moves(1, 101, 201), "none waits")
	for seq := range uint64(10) {
		add(seq, seq != 9)
	}
	l.moving = 2
	assert.False(t, moves(1, 101, 201), "a turn is moving it")
	assert.True(t, moves(2, 102, 202))
	assert.False(t, moves(2, 102, 302), "it is gone")
	assert.False(t, moves(9, 109, 209), "it was refused by the queue")
	l.moving = 0
	l.line.remove(7)
	assert.False(t, moves(2, 202, 302), "it has gone")
	add(11, true)
	for _, seq := range []uint64{7, 8, 11} {
		assert.True(t, moves(seq, 100+seq, 200+seq), seq)
	}
	l.line.remove(4)
	assert.Nil(t, l.line.index)
	add(7, true)
	assert.True(t, moves(7, 107, 207))
}

// One that a turn has begun keeps its place between two turns, since the turn remembers it.
func TestBegunLetterIsNotRelocated(t *testing.T) {
	l := Letters{Retained: new(Retained)}
	for seq := range uint64(2) {
		l.line.add(&Letter{Settled: queue.Settled{Seq: queue.Seq(seq + 1), Message: queue.Message{Pos: 101 + seq}}, Queued: true})
	}
	l.begun = true
	_, ok := l.RelocateLocked(1, 101, 201)
	assert.False(t, ok)
	_, ok = l.RelocateLocked(2, 102, 202)
	assert.True(t, ok)
	l.begun = false
	_, ok = l.RelocateLocked(1, 101, 201)
	assert.True(t, ok)
}

// A line that is never empty does not remember all letters that have passed.
func TestIndexOfALineIsBounded(t *testing.T) {
	l := Letters{Retained: new(Retained)}
	for seq := range uint64(10_000) {
		l.line.add(&Letter{Settled: queue.Settled{Seq: queue.Seq(seq + 1), Message: queue.Message{Pos: 1}}, Queued: true})
		if l.line.n > 1 {
			l.line.remove(1)
		}
		_, ok := l.RelocateLocked(queue.Seq(seq+1), 1, 1)
		assert.True(t, ok)
		assert.LessOrEqual(t, len(l.line.index), 2*l.line.n+chunkLetters+1)
	}
}
