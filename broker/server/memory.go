package server

import (
	"fmt"
	"time"

	"curfew/broker/amqp"
)

// The memory that a client makes the broker hold is counted per connection
// (connection.heldBytes): channels, consumers, incomplete publishes, transactions. It is
// drawn from the budget of all clients once per read, in steps, so that a small message
// costs nothing and most connections draw nothing. The outbox draws for unsent frames by
// itself.
const (
	accountStep = 16 << 10

	channelBytes  = 2 << 10 // with ownProperties and two names
	consumerBytes = 1 << 10

	// maxHeldBytes is how much one connection may hold in addition to the largest message. It also
	// applies if the budget is unlimited.
	maxHeldBytes = 64 << 20
)

// openAccount makes the connection draw from the budget from now on.
func (c *connection) openAccount() {
	c.account = c.srv.opts.Broker.Clients().Open(c.user, c.evict)
	c.out.openAccount(c.account)
}

// closeAccount gives back everything that was drawn.
func (c *connection) closeAccount() {
	if c.account != nil {
		c.account.Close()
	}
}

// evict closes the connection that holds the most. A client that does not read is cut off.
func (c *connection) evict(err error) {
	c.forceClose(overBudget(err))
	time.AfterFunc(closeGrace, c.cutOff)
}

func overBudget(err error) *amqp.Exception {
	return amqp.NewException(amqp.ResourceError, 0, 0, "%s", err)
}

// updateAccount draws from the budget what the connection now holds in addition, or gives
// back what it no longer holds. An error is 506, which closes the connection.
func (c *connection) updateAccount() error {
	if c.account == nil {
		return nil
	}
	holds := c.heldBytes.Load()
	due := holds - holds%accountStep
	switch {
	case due == c.accounted:
		return nil
	case due < c.accounted:
		c.account.Give(c.accounted - due)
	default:
		if most := maxHeldBytes + int64(c.srv.opts.Broker.MaxMessageBytes()); due > most {
			return overBudget(fmt.Errorf("unfinished publishes, consumers and channels of this connection take more than %d bytes", most))
		}
		if err := c.account.Take(due - c.accounted); err != nil {
			return overBudget(err)
		}
	}
	c.accounted = due
	return nil
}

// ownProperties is how many octets of properties each channel has room for. Longer
// properties, and bodies of several frames, are assembled in pooled buffers.
const ownProperties = 512

// keepProperties copies the properties of a publish whose body is still to come.
func (p *content) keepProperties(c *connection, properties []byte) {
	if len(properties) > cap(p.properties) {
		c.heldBytes.Add(-budgetBytes(p.properties))
		if recycle(p.properties); len(properties) <= ownProperties {
			p.properties = make([]byte, 0, ownProperties)
		} else {
			p.properties = newBuffer(len(properties))
		}
		c.heldBytes.Add(budgetBytes(p.properties))
	}
	p.properties = append(p.properties[:0], properties...)
}

// budgetBytes is how much of the budget a buffer takes; the channel's own buffer takes
// none.
func budgetBytes(b []byte) int64 {
	if cap(b) <= ownProperties {
		return 0
	}
	return int64(cap(b))
}

// appendBody appends a part of a body. The buffer grows as the body arrives, up to its
// size.
func (p *content) appendBody(c *connection, part []byte) {
	if need := len(p.body) + len(part); need > cap(p.body) {
		size := max(need, 4*cap(p.body))
		if uint64(size) > p.size {
			size = int(p.size)
		}
		grown := append(newBuffer(size), p.body...)
		c.heldBytes.Add(budgetBytes(grown) - budgetBytes(p.body))
		recycle(p.body)
		p.body = grown
	}
	p.body = append(p.body, part...)
}

// release gives back the buffers in which a publish was assembled.
func (p *content) release(c *connection) {
	if p.body != nil {
		c.heldBytes.Add(-budgetBytes(p.body))
		recycle(p.body)
		p.body = nil
	}
	if cap(p.properties) > ownProperties {
		c.heldBytes.Add(-budgetBytes(p.properties))
		recycle(p.properties)
		p.properties = nil
	}
}

// maxArgumentBytes bounds the arguments of a consumer that are kept for display. Of longer
// arguments only the meaningful ones are kept.
const maxArgumentBytes = 1 << 10

var meantArguments = []string{"x-priority", "x-consumer-timeout", "x-cancel-on-ha-failover"}

// encodeArguments encodes the arguments of a consumer, which then take much less memory.
func encodeArguments(args amqp.Table) []byte {
	if len(args) == 0 {
		return nil
	}
	if b := amqp.AppendTable(nil, args); len(b) <= maxArgumentBytes {
		return append([]byte(nil), b...) // without spare capacity
	}
	meant := amqp.Table{}
	for _, key := range meantArguments {
		if v, given := args[key]; given {
			meant[key] = v
		}
	}
	return amqp.AppendTable(nil, meant)
}

// decodeArguments decodes the arguments for display.
func (c *consumer) decodeArguments() amqp.Table {
	t, _, _ := amqp.ParseTable(c.arguments, amqp.Limits{}) // encoded by encodeArguments
	return t
}

// bytes returns the memory that a consumer takes.
func (c *consumer) bytes() int64 { return consumerBytes + int64(len(c.Tag)+len(c.arguments)) }
