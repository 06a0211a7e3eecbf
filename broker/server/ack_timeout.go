package server

import (
	"time"

	"curfew/broker/amqp"
)

// ackSweep is how often the channels are checked for deliveries that were not acknowledged
// in time (RabbitMQ: Delivery Acknowledgement Timeout; RabbitMQ checks every minute). A
// channel is closed at most this much later than its timeout.
const ackSweep = 10 * time.Second

// CheckAckTimeouts makes connections close their channels with deliveries that were not acknowledged in time. It happens
// every ackSweep anyway; whoever has moved a manual clock calls it, too.
func (s *Server) CheckAckTimeouts() {
	now := s.opts.Broker.Now()
	for _, c := range s.open() {
		for _, ch := range c.channels.list() {
			if ch.deliveries.Overdue(now, s.timeoutMillis) > 0 {
				c.deadline.requestCheck()
				break
			}
		}
	}
}

// closeOverdue closes the channels that have held deliveries for too long.
func (c *connection) closeOverdue() error {
	if !c.deadline.takeCheck(func() bool { return c.ctx.Err() != nil }) {
		return nil
	}
	now := c.srv.opts.Broker.Now()
	for _, ch := range c.channels.list() {
		timeout := ch.deliveries.Overdue(now, c.srv.timeoutMillis)
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
