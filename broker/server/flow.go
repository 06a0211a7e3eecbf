package server

import (
	"context"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"
)

// flowVisible is how long a connection is listed as in flow after it had to wait: it goes in
// and out of flow all the time (RabbitMQ: Flow Control).
const flowVisible = time.Second

// flow is whether a connection may have to wait for consumers, and when it last had to.
type flow struct {
	consuming bool         // had consumers when updatePaced was last called
	costly    bool         // it publishes what is costly, in a turn
	last      atomic.Int64 // when it was last made to wait, Unix µs; 0: never
}

// awaitOthers makes a connection wait whose publishes have run ahead of dead letters
// (Pacing.AwaitLetters) or, which is flow, of the consumers (broker.Rights.AwaitConsumers). During
// the wait it is not read: heartbeats, and a close by either side, wait for little more than half a
// second. A connection that consumes never has to wait, since its acks would not be read.
func (c *connection) awaitOthers() {
	if c.phase != running {
		return
	}
	c.user.Rights.Pacing.AwaitLetters()
	if len(c.user.Rights.Pacing.Crowded) == 0 {
		return
	}
	c.flow.last.Store(int64(c.srv.opts.Broker.Now()))
	c.user.Rights.AwaitConsumers(c.ctx.Done())
	c.flow.last.Store(int64(c.srv.opts.Broker.Now()))
	c.deadline.extended = time.Time{} // nothing was read during the wait
}

// takeCostlyTurn waits for a turn to publish one costly message, which must be flushed then.
func (c *connection) takeCostlyTurn() error {
	c.flush()
	c.flow.costly = true
	if !c.user.Rights.BeginTurn(true, c.ctx.Done()) {
		return context.Cause(c.ctx)
	}
	c.deadline.extended = time.Time{} // as in awaitOthers
	return nil
}

// endTurn ends a turn of either kind, if there is one.
func (c *connection) endTurn() {
	c.flow.costly = false
	if c.user.Rights != nil {
		c.user.Rights.EndTurn()
	}
}

// updatePaced records whether the connection may be made to wait. The reader calls it when
// there may be one consumer more or fewer.
func (c *connection) updatePaced() {
	c.flow.consuming = c.channels.consume()
	c.user.Rights.Pace(!c.flow.consuming)
}

// inFlow reports whether the connection recently had to wait for consumers. Any goroutine may
// call it.
func (c *connection) inFlow() bool {
	at := deadline.Instant(c.flow.last.Load())
	return at != 0 && c.srv.opts.Broker.Now().Sub(at) < flowVisible
}
