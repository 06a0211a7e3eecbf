package server

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
)

// waitWhileBlocked stops reading a connection that publishes while a resource alarm is on
// (RabbitMQ: Blocked Connection Notifications). Deliveries, heartbeats and confirms are
// still sent, and channels that have held deliveries for too long are closed. Whether the client
// is still there is learned from the system (peer.go). An error ends the connection.
func (c *connection) waitWhileBlocked() error {
	notified := false
	var look <-chan time.Time
	defer c.blocked.Store(false)
	for {
		reason, changed := c.srv.opts.Broker.Alarm.Reason()
		if reason == "" {
			break
		}
		if !notified {
			notified = true
			c.blocked.Store(true)
			c.log.Info("publisher is blocked", zap.String("reason", reason))
			if c.takesBlocked {
				c.out.Send(0, &amqp.ConnectionBlocked{Reason: reason})
			}
			ticks, stop := awaitPeer(c.socket)
			defer stop()
			look = ticks
		}
		select {
		case <-changed:
		case <-c.deadline.checkCalled:
			if err := c.closeOverdue(); err != nil {
				return err
			}
		case <-look:
			if err := c.checkPeer(); err != nil {
				return err
			}
		case <-c.out.Gone:
			return errEnd
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
	if notified && c.takesBlocked {
		c.out.Send(0, &amqp.ConnectionUnblocked{})
	}
	if notified { // while the connection was not read, the client's silence must not count
		c.deadline.extended = time.Time{}
	}
	return nil
}

// awaitUnblocked waits before a publish while a resource alarm is on. Whatever was read
// together with the publish waits as well, and is handled in order.
func (ch *channel) awaitUnblocked() error {
	if !ch.conn.srv.opts.Broker.Alarm.Blocked() {
		return nil
	}
	ch.conn.flush()
	if err := ch.conn.waitWhileBlocked(); err != nil {
		return err
	}
	if ch.closing {
		return errOverdue
	}
	return nil
}

// fullRetry is how soon a publish that found the disk full is tried again, if no resource
// alarm is on.
const fullRetry = 100 * time.Millisecond

// errOverdue abandons a publish whose channel was closed while the publish waited.
var errOverdue = errors.New("server: the channel was closed while a publish waited")

// addWhenRoom adds a publish. It waits for as long as the disk is full, and for a turn if the
// publish is costly.
func (ch *channel) addWhenRoom(m *broker.Publication) (routed bool, err error) {
	for {
		routed, err = ch.publisher.Add(m)
		if err == nil {
			return routed, nil
		}
		if errors.Is(err, broker.ErrCostly) {
			if err = ch.conn.takeCostlyTurn(); err != nil {
				return false, err
			}
			continue
		}
		if !errors.Is(err, broker.ErrFull) {
			return routed, err
		}
		ch.conn.flush()
		if err := ch.conn.waitWhileBlocked(); err != nil {
			return false, err
		}
		if ch.closing {
			return false, errOverdue
		}
		pause := time.NewTimer(fullRetry)
		select {
		case <-pause.C:
		case <-ch.conn.out.Gone:
			return false, errEnd
		case <-ch.conn.ctx.Done():
			return false, context.Cause(ch.conn.ctx)
		}
	}
}
