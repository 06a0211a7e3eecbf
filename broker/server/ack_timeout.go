package server

import (
	"context"
	"time"

	"curfew/broker/amqp"
)

// ackSweep is how often the channels are looked at for deliveries that were not
// acknowledged in time (RabbitMQ: Delivery Acknowledgement Timeout, there each
// minute). So much later than its time a channel is closed at the latest.
const ackSweep = 10 * time.Second

// watchAcks has the connections look for overdue deliveries until ctx ends.
func (s *Server) watchAcks(ctx context.Context) {
	ticks := time.NewTicker(ackSweep)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		now := s.opts.Broker.Now()
		for _, c := range s.open() {
			for _, ch := range c.listChannels() {
				if ch.overdue(now) > 0 {
					c.remind()
					break
				}
			}
		}
	}
}

// remind has the reader close the channels with overdue deliveries. By any
// goroutine; it does not block.
func (c *connection) remind() {
	c.reminding.Lock()
	defer c.reminding.Unlock()
	c.reminded = true
	c.nc.SetReadDeadline(time.Unix(1, 0)) // the reader wakes
	select {
	case c.nudged <- struct{}{}: // or wakes in hold
	default:
	}
}

// wasReminded says whether remind was called since it was asked last, and gives
// the socket its deadline back.
func (c *connection) wasReminded() bool {
	c.reminding.Lock()
	defer c.reminding.Unlock()
	if !c.reminded {
		return false
	}
	c.reminded = false
	if c.phase == closing {
		c.nc.SetReadDeadline(c.leaveBy)
		return false
	}
	c.nc.SetReadDeadline(time.Time{})
	c.readUntil = time.Time{}
	c.extendDeadline()
	if c.ctx.Err() != nil { // that deadline may have been forceClose's
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
	return true
}

func (c *connection) isReminded() bool {
	c.reminding.Lock()
	defer c.reminding.Unlock()
	return c.reminded
}

// closeOverdue closes the channels that hold deliveries for too long.
func (c *connection) closeOverdue() error {
	if !c.wasReminded() {
		return nil
	}
	now := c.srv.opts.Broker.Now()
	for _, ch := range c.listChannels() {
		timeout := ch.overdue(now)
		if timeout == 0 {
			continue
		}
		err := c.fail(ch.id, amqp.NewException(amqp.PreconditionFailed, 0, 0,
			"delivery acknowledgement on channel %d timed out. Timeout value used: %d ms. This timeout value can be configured, see consumers doc guide to learn more",
			ch.id, timeout))
		if err != nil {
			return err
		}
	}
	return nil
}

// overdue returns the timeout, in ms, of a delivery that was not acknowledged in
// time; 0 if there is none. It looks at those alone that are older than the
// shortest timeout on the channel.
func (ch *channel) overdue(now int64) (timeoutMillis int64) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed || ch.unacked.count == 0 {
		return 0
	}
	shortest := ch.defaultTimeout()
	for _, c := range ch.consumers {
		shortest = shorter(shortest, ch.timeoutOf(held{q: c.on, c: c}))
	}
	ch.unacked.each(func(h *held) bool {
		age := (now - h.at) / 1000 // ms
		if t := ch.timeoutOf(*h); t > 0 && age > t {
			timeoutMillis = t
		}
		return timeoutMillis == 0 && shortest > 0 && age > shortest
	})
	return timeoutMillis
}

// timeoutOf is how long a delivery may stay unacknowledged, in ms: by its
// consumer, its queue or the server; 0 for ever. The server's does not count while the
// delivery is locked: the lock ends it sooner, unless it is renewed.
func (ch *channel) timeoutOf(h held) int64 {
	if h.c != nil && h.c.TimeoutMillis > 0 {
		return h.c.TimeoutMillis
	}
	if t := h.q.ConsumerTimeoutMillis(); t > 0 {
		return t
	}
	if h.seq != 0 && h.locked {
		return 0
	}
	return ch.defaultTimeout()
}

func (ch *channel) defaultTimeout() int64 {
	return max(0, ch.conn.srv.opts.ConsumerTimeout.Milliseconds())
}

// shorter of two timeouts, each 0 for none.
func shorter(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
