package deliveries

import (
	"curfew/broker"
	"curfew/broker/deadline"
)

// Overdue returns the timeout, in ms, of a delivery that was not acknowledged in time, or 0
// if there is none. serverMillis is the timeout for deliveries whose consumer and queue set
// none; 0 means none. It examines only deliveries older than the shortest timeout on the
// channel. They may be millions: queues that deliver to the channel do not wait for all of them.
func (d *Deliveries) Overdue(now deadline.Instant, serverMillis int64) (timeoutMillis int64) {
	shortest := d.shortestTimeout(serverMillis)
	for tag, more := uint64(1), true; more && timeoutMillis == 0; {
		timeoutMillis, tag, more = d.overdueStep(tag, now, serverMillis, shortest)
	}
	return timeoutMillis
}

// shortestTimeout is the shortest of the server's and those of the channel's consumers; 0: none.
func (d *Deliveries) shortestTimeout(serverMillis int64) int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.consumers {
		serverMillis = shorter(serverMillis, timeoutOf(&Unacked{Queue: c.Queue, Consumer: c}, serverMillis))
	}
	return serverMillis
}

// overdueStep is Overdue for some deliveries, from a tag on. more: it goes on at next.
func (d *Deliveries) overdueStep(tag uint64, now deadline.Instant, serverMillis, shortest int64) (timeoutMillis int64, next uint64, more bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return 0, 0, false
	}
	left := endAtOnce
	for t, m := range d.unacked.from(tag) {
		if left--; left < 0 {
			return 0, t, true
		}
		if m.Queue == nil {
			continue
		}
		age := now.Sub(m.At).Milliseconds()
		if timeout := timeoutOf(m, serverMillis); timeout > 0 && age > timeout {
			return timeout, 0, false
		}
		if shortest == 0 || age <= shortest {
			break
		}
	}
	return 0, 0, false
}

// timeoutOf returns how long a delivery may stay unacknowledged, in ms; 0 means forever.
// Its consumer, its queue or the server sets the timeout. The server's does not apply while
// the delivery is locked: the lock ends sooner, unless it is renewed.
func timeoutOf(m *Unacked, serverMillis int64) int64 {
	if m.locked && m.Seq != 0 {
		serverMillis = 0
	}
	return Timeout(m.Queue, m.Consumer, serverMillis)
}

// Timeout returns how long a delivery that is not locked may stay unacknowledged, in ms; 0
// means forever. c is nil for basic.get.
func Timeout(q *broker.Queue, c *Consumer, serverMillis int64) int64 {
	if c != nil && c.TimeoutMillis > 0 {
		return c.TimeoutMillis
	}
	if t := q.Settings().TimeoutMillis; t > 0 {
		return t
	}
	return serverMillis
}

// shorter returns the shorter of two timeouts; 0 means none.
func shorter(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
