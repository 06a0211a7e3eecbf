package server

import "time"

// flowShown is for how long a connection is shown in flow after it was: it is in and out of
// it all the time (RabbitMQ: Flow Control).
const flowShown = time.Second

// awaitConsumers has a connection wait that publishes more than the consumers get processor
// time for (broker.Rights.AwaitConsumers). It is not read meanwhile: heartbeats, and a
// close by either side, wait that half a second at most. A connection that consumes is never
// made to wait, since its acks would not be read.
func (c *connection) awaitConsumers() {
	if c.phase != running {
		return
	}
	crowded := c.rights.Crowded()
	if crowded {
		c.flowed.Store(c.srv.opts.Broker.Now())
	}
	c.rights.AwaitConsumers(c.ctx.Done())
	if crowded {
		c.flowed.Store(c.srv.opts.Broker.Now())
		c.readUntil = time.Time{} // nothing was read meanwhile
	}
}

// pace says whether the connection can be made to wait. For the reader, once there may be one
// consumer more, or fewer.
func (c *connection) pace() {
	c.consuming = c.consumes()
	c.rights.Pace(!c.consuming)
}

// consumes says whether a channel has consumers.
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

// inFlow says whether the connection has been made to wait for consumers lately.
func (c *connection) inFlow() bool {
	at := c.flowed.Load()
	return at != 0 && c.srv.opts.Broker.Now()-at < flowShown.Microseconds()
}
