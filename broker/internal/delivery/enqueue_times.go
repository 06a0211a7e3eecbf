package delivery

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
)

// enqueueTimes are the instants at which the messages of a queue entered it, for
// x-delivery-deadline: 8 bytes for each message, in chunks of consecutive messages. A chunk is
// freed with its last message. The zero value is empty. Other queues have nil, which stays empty.
type enqueueTimes struct {
	chunks  map[queue.Seq]*timesChunk // by Seq >> timesBits
	last    *timesChunk               // the chunk that was added to last; its key is lastKey
	lastKey queue.Seq
}

const timesBits = 7

type timesChunk struct {
	live int
	at   [1 << timesBits]deadline.Instant // 0: not in the queue
}

// add records when seq, which must be new, entered the queue.
func (t *enqueueTimes) add(seq queue.Seq, at deadline.Instant) {
	key := seq >> timesBits
	if t.last == nil || t.lastKey != key {
		if t.chunks == nil {
			t.chunks = map[queue.Seq]*timesChunk{}
		}
		if t.chunks[key] == nil {
			t.chunks[key] = &timesChunk{}
		}
		t.last, t.lastKey = t.chunks[key], key
	}
	t.last.live++
	t.last.at[seq%(1<<timesBits)] = at
}

// at is when seq entered the queue; 0: not known.
func (t *enqueueTimes) at(seq queue.Seq) deadline.Instant {
	if t == nil {
		return 0
	}
	if c := t.chunks[seq>>timesBits]; c != nil {
		return c.at[seq%(1<<timesBits)]
	}
	return 0
}

// drop forgets a message that has left. It does nothing if the message is not known.
func (t *enqueueTimes) drop(seq queue.Seq) {
	if t == nil || len(t.chunks) == 0 {
		return
	}
	key := seq >> timesBits
	c := t.chunks[key]
	if c == nil || c.at[seq%(1<<timesBits)] == 0 {
		return
	}
	c.at[seq%(1<<timesBits)] = 0
	if c.live--; c.live == 0 {
		delete(t.chunks, key)
		if t.last == c {
			t.last = nil
		}
	}
}
