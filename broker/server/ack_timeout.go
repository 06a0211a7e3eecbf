package server

import (
	"context"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
)

// ackSweep is how often the channels are checked for deliveries that were not acknowledged
// in time (RabbitMQ: Delivery Acknowledgement Timeout; RabbitMQ checks every minute). A
// channel is closed at most this much later than its timeout.
const ackSweep = 10 * time.Second

// watchAckTimeouts makes connections check for overdue deliveries until ctx ends.
func (s *Server) watchAckTimeouts(ctx context.Context) {
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
					c.requestAckCheck()
					break
				}
			}
		}
	}
}

// requestAckCheck makes the reader close the channels with overdue deliveries. Any
// goroutine may call it; it does not block.
func (c *connection) requestAckCheck() {
	c.ackCheckMu.Lock()
	defer c.ackCheckMu.Unlock()
	c.ackCheck = true
	c.nc.SetReadDeadline(time.Unix(1, 0)) // wakes the reader
	select {
	case c.ackCheckCalled <- struct{}{}: // or wakes it in waitWhileBlocked
	default:
	}
}

// takeAckCheck reports whether requestAckCheck was called since the last time, and resets
// the read deadline.
func (c *connection) takeAckCheck() bool {
	c.ackCheckMu.Lock()
	defer c.ackCheckMu.Unlock()
	if !c.ackCheck {
		return false
	}
	c.ackCheck = false
	if c.phase == closing {
		c.nc.SetReadDeadline(c.leaveBy)
		return false
	}
	c.nc.SetReadDeadline(time.Time{})
	c.readUntil = time.Time{}
	c.extendDeadline()
	if c.ctx.Err() != nil { // the deadline may have been set by forceClose
		c.nc.SetReadDeadline(time.Unix(1, 0))
	}
	return true
}

func (c *connection) ackCheckPending() bool {
	c.ackCheckMu.Lock()
	defer c.ackCheckMu.Unlock()
	return c.ackCheck
}

// closeOverdue closes the channels that have held deliveries for too long.
func (c *connection) closeOverdue() error {
	if !c.takeAckCheck() {
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

// overdue returns the timeout, in ms, of a delivery that was not acknowledged in time, or 0
// if there is none. It examines only deliveries older than the shortest timeout on the
// channel.
func (ch *channel) overdue(now deadline.Instant) (timeoutMillis int64) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.closed || ch.unacked.count == 0 {
		return 0
	}
	shortest := ch.defaultTimeout()
	for _, c := range ch.consumers {
		shortest = shorter(shortest, ch.timeoutOf(unackedDelivery{q: c.on, c: c}))
	}
	ch.unacked.each(func(h *unackedDelivery) bool {
		age := now.Sub(h.at).Milliseconds()
		if t := ch.timeoutOf(*h); t > 0 && age > t {
			timeoutMillis = t
		}
		return timeoutMillis == 0 && shortest > 0 && age > shortest
	})
	return timeoutMillis
}

// timeoutOf returns how long a delivery may stay unacknowledged, in ms; 0 means forever.
// Its consumer, its queue or the server sets the timeout. The server's does not apply while
// the delivery is locked: the lock ends sooner, unless it is renewed.
func (ch *channel) timeoutOf(h unackedDelivery) int64 {
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

// shorter returns the shorter of two timeouts; 0 means none.
func shorter(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
