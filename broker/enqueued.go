package broker

import "curfew/broker/queue"

// enqueueTimes say when the messages of a queue entered it, for x-delivery-deadline: 8
// bytes a message, in chunks of consecutive ones that go with the last of them. Other
// queues keep none. The zero value is empty.
type enqueueTimes struct {
	chunks  map[queue.Seq]*timesChunk // by Seq >> timesBits
	last    *timesChunk               // added to last, whose key is lastKey
	lastKey queue.Seq
}

const timesBits = 7

type timesChunk struct {
	live int
	at   [1 << timesBits]int64 // Unix µs; 0: not in the queue
}

// add notes that seq, which is not there, entered at an instant, Unix µs.
func (t *enqueueTimes) add(seq queue.Seq, at int64) {
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

// at returns 0 if it is not known.
func (t *enqueueTimes) at(seq queue.Seq) int64 {
	if c := t.chunks[seq>>timesBits]; c != nil {
		return c.at[seq%(1<<timesBits)]
	}
	return 0
}

// drop forgets a message that has left; one that is not known is none.
func (t *enqueueTimes) drop(seq queue.Seq) {
	if len(t.chunks) == 0 {
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
