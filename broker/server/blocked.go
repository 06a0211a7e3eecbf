package server

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
)

// hold keeps a connection that publishes from being read while the broker's gate
// is closed (RabbitMQ: Blocked Connection Notifications). Deliveries, heartbeats
// and confirms go out meanwhile, and channels that hold deliveries for too long are
// closed. Its error ends the connection.
func (c *connection) hold() error {
	told := false
	defer c.held.Store(false)
	for {
		reason, changed := c.srv.opts.Broker.Gate()
		if reason == "" {
			break
		}
		if !told {
			told = true
			c.held.Store(true)
			c.tellBlocked(reason)
		}
		select {
		case <-changed:
		case <-c.nudged:
			if err := c.closeOverdue(); err != nil {
				return err
			}
		case <-c.out.gone:
			return errEnd
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
	if told {
		c.tellUnblocked()
	}
	return nil
}

func (c *connection) tellBlocked(reason string) {
	c.log.Info("publisher is blocked", zap.String("reason", reason))
	if c.takesBlocked {
		c.out.send(0, &amqp.ConnectionBlocked{Reason: reason})
	}
}

// tellUnblocked lets the client's silence while nothing was read count for
// nothing.
func (c *connection) tellUnblocked() {
	if c.takesBlocked {
		c.out.send(0, &amqp.ConnectionUnblocked{})
	}
	c.readUntil = time.Time{}
}

// awaitGate waits before a publish while the gate is closed: what was read together with it
// waits where it is, and goes on in order.
func (ch *channel) awaitGate() error {
	if !ch.conn.srv.opts.Broker.Gated() {
		return nil
	}
	ch.conn.flush()
	if err := ch.conn.hold(); err != nil {
		return err
	}
	if ch.closing {
		return errOverdue
	}
	return nil
}

// fullRetry is how soon a publish that found the disk full is tried again when
// the gate does not say so itself.
const fullRetry = 100 * time.Millisecond

// errOverdue gives a publish up whose channel was closed while it waited.
var errOverdue = errors.New("server: the channel was closed meanwhile")

// addWhenRoom adds a publish, waiting for as long as the disk is full.
func (ch *channel) addWhenRoom(m *broker.Publication) (routed bool, err error) {
	for {
		routed, err = ch.publisher.Add(m)
		if !errors.Is(err, broker.ErrFull) {
			return routed, err
		}
		ch.conn.flush()
		if err := ch.conn.hold(); err != nil {
			return false, err
		}
		if ch.closing {
			return false, errOverdue
		}
		pause := time.NewTimer(fullRetry)
		select {
		case <-pause.C:
		case <-ch.conn.out.gone:
			return false, errEnd
		case <-ch.conn.ctx.Done():
			return false, context.Cause(ch.conn.ctx)
		}
	}
}
