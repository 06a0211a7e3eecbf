package broker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// One that a turn has begun keeps its place between two turns, since the turn remembers it.
func TestBegunLetterIsNotRelocated(t *testing.T) {
	var l letterLine
	for seq := range uint64(2) {
		l.add(&letter{settled: queue.Settled{Seq: queue.Seq(seq + 1), Message: queue.Message{Pos: 101 + seq}}, queued: true})
	}
	l.begun = &crossing{letter: *l.at(0)}
	_, ok := l.relocate(1, 101, 201)
	assert.False(t, ok)
	_, ok = l.relocate(2, 102, 202)
	assert.True(t, ok)
	l.begun = nil
	_, ok = l.relocate(1, 101, 201)
	assert.True(t, ok)
}

// A line that is never empty does not remember all letters that have passed.
func TestIndexOfALineIsBounded(t *testing.T) {
	var l letterLine
	for seq := range uint64(10_000) {
		l.add(&letter{settled: queue.Settled{Seq: queue.Seq(seq + 1), Message: queue.Message{Pos: 1}}, queued: true})
		if l.len() > 1 {
			l.pass(1)
		}
		_, ok := l.relocate(queue.Seq(seq+1), 1, 1)
		assert.True(t, ok)
		assert.LessOrEqual(t, len(l.index), 2*l.len()+chunkLetters+1)
	}
}

// A queue whose letters wait for memory waits once, however many come meanwhile, and not for longer.
func TestQueueWaitsForMemoryOnce(t *testing.T) {
	b, err := New(Options{})
	require.NoError(t, err)
	defer b.Close()
	vh, _ := b.VHost("/")
	q, err := vh.DeclareQueue(nil, "q", QueueDeclare{})
	require.NoError(t, err)
	f := &forwarder{b: b, wake: make(chan struct{}, 1), hold: time.NewTimer(time.Hour)}
	for range 3 {
		f.keep(q)
		f.add(q)
	}
	assert.Equal(t, []*Queue{q}, f.held)
	assert.Nil(t, f.next())
	f.release()
	assert.Equal(t, q, f.next())
	assert.Empty(t, f.held)
}
