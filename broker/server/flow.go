package server

import (
	"time"

	"curfew/broker/deadline"
)

// flowVisible is how long a connection is listed as in flow after it had to wait: it goes in
// and out of flow all the time (RabbitMQ: Flow Control).
const flowVisible = time.Second

// awaitConsumers makes a connection wait that publishes so fast that the consumers get too
// little processor time (broker.Rights.AwaitConsumers). Meanwhile it is not read:
// heartbeats, and a close by either side, wait for half a second at most. A connection that consumes never
// has to wait, since its acks would not be read.
func (c *connection) awaitConsumers() {
	if c.phase != running {
		return
	}
	crowded := c.rights.Crowded()
	if crowded {
		c.lastFlow.Store(int64(c.srv.opts.Broker.Now()))
	}
	c.rights.AwaitConsumers(c.ctx.Done())
	if crowded {
		c.lastFlow.Store(int64(c.srv.opts.Broker.Now()))
		c.readUntil = time.Time{} // nothing was read meanwhile
	}
}

// updatePaced records whether the connection may be made to wait. The reader calls it when
// there may be one consumer more or fewer.
func (c *connection) updatePaced() {
	c.consuming = c.consumes()
	c.rights.Pace(!c.consuming)
}

// consumes reports whether any channel has consumers.
func (c *connection) consumes() bool {
	for _, ch := range c.channels {
		if ch.consumerCount() > 0 {
			return true
		}
	}
	return false
}

func (ch *channel) consumerCount() int {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return len(ch.consumers)
}

// inFlow reports whether the connection recently had to wait for consumers.
func (c *connection) inFlow() bool {
	at := deadline.Instant(c.lastFlow.Load())
	return at != 0 && c.srv.opts.Broker.Now().Sub(at) < flowVisible
}
