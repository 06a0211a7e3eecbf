package simulation

import (
	"fmt"
	"slices"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// client is one connection: its consumers, and its unacked messages.
type client struct {
	name      string
	consumers []*consumer
	unacked   []*delivery
}

// delivery is a message that a client has received and not settled. Its queue may be gone.
type delivery struct {
	entry *entry
	queue *broker.Queue
	from  *consumer // nil: a get
}

// consumer is a basic.consume of a client. With NoAck its credit is always 1.
type consumer struct {
	broker.Consumer
	w         *world
	client    *client
	queue     *modelQueue
	credit    int
	cancelled bool // by the broker: its queue was deleted
}

// seen is a delivery, as the broker made it.
type seen struct {
	seq           queue.Seq
	body          string
	properties    string
	exchange, key string
	redelivered   bool
	behind        int

	client   *client
	consumer *consumer // nil: a get
	noAck    bool
}

func see(d *broker.Delivery) seen {
	return seen{
		seq: d.Seq, body: string(d.Message.Body), properties: string(d.Message.Properties),
		exchange: string(d.Message.Exchange), key: string(d.Message.RoutingKey), redelivered: d.Redelivered, behind: d.Ready,
	}
}

func (s *seen) String() string {
	p, err := amqp.ParseProperties([]byte(s.properties), amqp.Limits{Depth: 32})
	return fmt.Sprintf("%v of %d bytes by %q %q, redelivered %v, %d ready behind it, %+v %v",
		s.seq, len(s.body), s.exchange, s.key, s.redelivered, s.behind, p, err)
}

// Pull implements broker.Sink. Whoever called the broker holds the world's lock.
func (c *consumer) Pull(_ *broker.Consumer, src *broker.Source, most int) (taken int, more bool) {
	var d broker.Delivery
	for taken < most && c.credit > 0 && src.Next(&d) {
		taken++
		if !c.NoAck {
			c.credit--
		}
		s := see(&d)
		s.client, s.consumer, s.noAck = c.client, c, c.NoAck
		c.w.seen[c.queue] = append(c.w.seen[c.queue], s)
	}
	return taken, c.credit > 0
}

// Cancelled implements broker.Sink.
func (c *consumer) Cancelled(*broker.Consumer) { c.cancelled = true }

// settled removes deliveries from those that the client holds.
func (c *client) settled(gone []*delivery) {
	c.unacked = slices.DeleteFunc(c.unacked, func(d *delivery) bool { return slices.Contains(gone, d) })
}

func (c *client) removeConsumer(x *consumer) {
	c.consumers = slices.DeleteFunc(c.consumers, func(have *consumer) bool { return have == x })
}
