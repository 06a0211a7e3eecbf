package server

import (
	"fmt"
	"time"

	"curfew/broker/amqp"
)

// What a client has the broker hold is counted per connection (connection.holds): channels,
// consumers, publishes that are not complete, transactions. It is drawn from the budget of
// all clients once a read, in steps, so that a small message costs nothing and most
// connections never ask. What waits to be sent the outbox draws by itself.
const (
	heldStep = 16 << 10

	channelBytes  = 2 << 10 // with ownProperties and two names
	consumerBytes = 1 << 10

	// mostHeld is what one connection may hold beside the largest message, where the budget
	// has no bound.
	mostHeld = 64 << 20
)

// openAccount has the connection draw from the budget from now on.
func (c *connection) openAccount() {
	c.account = c.srv.opts.Broker.Clients().Open(c.user, c.evict)
	c.out.openAccount(c.account)
}

// closeAccount gives back all that was drawn.
func (c *connection) closeAccount() {
	if c.account != nil {
		c.account.Close()
	}
}

// evict closes a connection that holds most of what there is. One that does not read what
// it is sent is cut off.
func (c *connection) evict(err error) {
	c.forceClose(heldTooMuch(err))
	time.AfterFunc(closeGrace, c.cutOff)
}

func heldTooMuch(err error) *amqp.Exception {
	return amqp.NewException(amqp.ResourceError, 0, 0, "%s", err)
}

// payHeld draws from the budget what the connection has come to hold, or gives back what
// it holds no more. The error is 506, which closes the connection.
func (c *connection) payHeld() error {
	if c.account == nil {
		return nil
	}
	holds := c.holds.Load()
	due := holds - holds%heldStep
	switch {
	case due == c.paid:
		return nil
	case due < c.paid:
		c.account.Give(c.paid - due)
	default:
		if most := mostHeld + int64(c.srv.opts.Broker.MaxMessageBytes()); due > most {
			return heldTooMuch(fmt.Errorf("unfinished publishes, consumers and channels of this connection take more than %d bytes", most))
		}
		if err := c.account.Take(due - c.paid); err != nil {
			return heldTooMuch(err)
		}
	}
	c.paid = due
	return nil
}

// ownProperties is how many octets of properties a channel keeps room for. Longer ones, and
// bodies that come in several frames, are put together in buffers of the pools.
const ownProperties = 512

// keep copies the properties of a publish whose body is still to come.
func (p *content) keep(c *connection, properties []byte) {
	if len(properties) > cap(p.properties) {
		c.holds.Add(-room(p.properties))
		if recycle(p.properties); len(properties) <= ownProperties {
			p.properties = make([]byte, 0, ownProperties)
		} else {
			p.properties = newBuffer(len(properties))
		}
		c.holds.Add(room(p.properties))
	}
	p.properties = append(p.properties[:0], properties...)
}

// room is how much of the budget a buffer of a content takes; the properties' own nothing.
func room(b []byte) int64 {
	if cap(b) <= ownProperties {
		return 0
	}
	return int64(cap(b))
}

// gather appends a part of a body. The room for it grows as it arrives, to its size at last.
func (p *content) gather(c *connection, part []byte) {
	if need := len(p.body) + len(part); need > cap(p.body) {
		size := max(need, 4*cap(p.body))
		if uint64(size) > p.size {
			size = int(p.size)
		}
		grown := append(newBuffer(size), p.body...)
		c.holds.Add(room(grown) - room(p.body))
		recycle(p.body)
		p.body = grown
	}
	p.body = append(p.body, part...)
}

// release gives back what a publish was put together in.
func (p *content) release(c *connection) {
	if p.body != nil {
		c.holds.Add(-room(p.body))
		recycle(p.body)
		p.body = nil
	}
	if cap(p.properties) > ownProperties {
		c.holds.Add(-room(p.properties))
		recycle(p.properties)
		p.properties = nil
	}
}

// mostShown bounds the arguments of a consumer that are kept for others to see; of
// longer ones those that mean something are.
const mostShown = 1 << 10

var meantArguments = []string{"x-priority", "x-consumer-timeout", "x-cancel-on-ha-failover"}

// shown encodes the arguments of a consumer: so they take a fraction of the memory.
func shown(args amqp.Table) []byte {
	if len(args) == 0 {
		return nil
	}
	if b := amqp.AppendTable(nil, args); len(b) <= mostShown {
		return append([]byte(nil), b...) // no longer than it has to be
	}
	meant := amqp.Table{}
	for _, key := range meantArguments {
		if v, given := args[key]; given {
			meant[key] = v
		}
	}
	return amqp.AppendTable(nil, meant)
}

// shownArguments decodes what others are to see.
func (c *consumer) shownArguments() amqp.Table {
	t, _, _ := amqp.ParseTable(c.arguments, amqp.Limits{}) // it was encoded here
	return t
}

// bytes is what a consumer takes.
func (c *consumer) bytes() int64 { return consumerBytes + int64(len(c.Tag)+len(c.arguments)) }
