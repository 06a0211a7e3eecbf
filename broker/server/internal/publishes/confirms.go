package publishes

import (
	"sync"

	"curfew/broker/server/internal/outbox"
)

// Confirms are the publisher confirms of one channel, from confirm.select on. The first
// publish has the number 1. Confirms have the numbers as delivery tags.
type Confirms struct {
	published uint64 // the number of the last publish; belongs to the connection's reader

	// mu comes before the outbox's lock.
	mu        sync.Mutex
	requested uint64 // confirms were requested from the broker up to this number
	answered  uint64 // publishes confirmed or refused
	confirmed uint64
	closed    bool
}

// Publish numbers one more publish. Only the connection's reader may call it.
func (c *Confirms) Publish() { c.published++ }

// Batch is what was published between two flushes: the numbers first to last.
type Batch struct {
	first, last uint64
	refused     []uint64 // of them, those that a full queue refused; ascending
}

// Next returns what was published since the last call; false: nothing. refused are the
// publishes of the batch that a full queue refused, counted from 0. Once the others are as
// durable as the store promises, Confirm must be called. Only the connection's reader may
// call Next.
func (c *Confirms) Next(refused []int) (b Batch, some bool) {
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

// Confirm confirms a batch, except for what was refused, and returns how many publishes were
// confirmed. Any goroutine may call it, for batches in their order. If the channel has been
// closed in the meantime, nothing is sent: its number may belong to another channel by now.
func (c *Confirms) Confirm(b Batch, o *outbox.Outbox, channel uint16) (confirmed uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.Lock()
	defer o.Unlock()
	if o.DeadLocked() || c.closed {
		return 0
	}
	confirmed = b.last - b.first + 1 - uint64(len(b.refused))
	c.answered += b.last - b.first + 1
	c.confirmed += confirmed
	o.ConfirmLocked(channel, b.first, b.last, b.refused)
	return confirmed
}

// Close makes Confirm send nothing from now on.
func (c *Confirms) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
}

// Counts returns how many publishes were confirmed, and how many wait for a confirm. Any
// goroutine may call it.
func (c *Confirms) Counts() (confirmed, waiting uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.confirmed, c.requested - c.answered
}
