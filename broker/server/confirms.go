package server

import (
	"sync"

	"curfew/broker/server/internal/deliveries"
)

// confirms are the publisher confirms of one channel, from confirm.select on. The first
// publish has the number 1. They have the numbers as delivery tags.
type confirms struct {
	published uint64 // the number of the last publish; only the connection's reader changes it

	// mu comes before the outbox's lock.
	mu        sync.Mutex
	requested uint64 // confirms were requested from the broker up to this number
	answered  uint64 // publishes confirmed or refused
	confirmed uint64
	closed    bool
}

// confirmBatch is what was published between two flushes: the numbers first to last.
type confirmBatch struct {
	first, last uint64
	refused     []uint64 // of them, those that a full queue refused; ascending
}

// next returns what was published since the last call; false: nothing. refused are the
// publishes of the batch that a full queue refused, counted from 0. Once the others are as
// durable as the store promises, confirm must be called. Only the connection's reader may
// call next.
func (c *confirms) next(refused []int) (b confirmBatch, some bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requested == c.published {
		return b, false
	}
	b.first, b.last = c.requested+1, c.published
	c.requested = c.published
	for _, n := range refused {
		b.refused = append(b.refused, b.first+uint64(n))
	}
	return b, true
}

// confirm confirms a batch, except for what was refused, and returns how many publishes were
// confirmed. Any goroutine may call it, for batches in their order. If the channel has been
// closed in the meantime, nothing is sent: its number may belong to another channel by now.
func (c *confirms) confirm(b confirmBatch, o *deliveries.Outbox, channel uint16) (confirmed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.Lock()
	defer o.Unlock()
	if o.Dead || c.closed {
		return 0
	}
	confirmed = b.last - b.first + 1 - uint64(len(b.refused))
	c.answered += b.last - b.first + 1
	c.confirmed += confirmed
	o.ConfirmLocked(channel, b.first, b.last, b.refused)
	return confirmed
}

// close makes confirm send nothing from now on.
func (c *confirms) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// counts returns how many publishes were confirmed, and how many wait for a confirm. Any
// goroutine may call it.
func (c *confirms) counts() (confirmed, waiting uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.confirmed, c.requested - c.answered
}
