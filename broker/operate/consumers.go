package operate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/server"
)

// Consumer is a consumer, or a channel that gets messages of a queue, with what it holds.
type Consumer struct {
	server.UnackedHolder
	Client       Client
	OldestMillis int64 // when the oldest message that it holds was delivered, Unix ms by the wall clock; 0: it holds none
	// EarliestMillis is the earliest deadline that came while it holds the message, Unix ms by the wall clock; 0: none came.
	EarliestMillis int64
}

// Client is what a client says about itself. What it does not say is empty.
type Client struct {
	Name     string `json:"connection_name"`
	Product  string `json:"product"`
	Version  string `json:"version"`
	Platform string `json:"platform"`
}

// ClientOf reads the properties of a client.
func ClientOf(t amqp.Table) Client {
	text := func(key string) string {
		s, _ := t[key].(string)
		return s
	}
	return Client{text("connection_name"), text("product"), text("version"), text("platform")}
}

// Title is the client's own name, or its product, or else what it is called otherwise.
func (c *Client) Title(otherwise string) string {
	return cmp.Or(c.Name, strings.TrimSpace(c.Product+" "+c.Version), otherwise)
}

// plainly says RabbitMQ's statuses of consumers in plain words.
var plainly = map[string]string{"up": "active", "single_active": "the single active one", "waiting": "waits until it is the active one"}

// Words say whether messages are delivered to the consumer, and what else is special about it.
func (c *Consumer) Words() string {
	text := cmp.Or(plainly[string(c.Status)], string(c.Status))
	switch {
	case c.Kind() == "get":
		return "gets messages one by one"
	case c.Cancelled:
		return "cancelled"
	case c.NoAck:
		return text + ", without acks"
	case c.Exclusive:
		return text + ", exclusive"
	}
	return text
}

// Kind is "consumer", "cancelled" for what a cancelled consumer has not settled, or "get" for basic.get.
func (c *Consumer) Kind() string {
	switch {
	case c.Cancelled:
		return "cancelled"
	case c.Tag == "":
		return "get"
	}
	return "consumer"
}

// Holders lists who holds messages or may get them: the consumers in a virtual host, "" for all that the actor may look into, on a queue or
// on any (""), and the channels that hold messages by basic.get. Those with the most messages past their deadlines come first. The list is at
// most a second old.
func Holders(o *Operations, a Actor, at QueueName) ([]Consumer, error) {
	if err := o.permit(&a, ListQueues, at.VHost); err != nil {
		return nil, err
	}
	seen, list := o.Visible(a), []Consumer{}
	for _, c := range o.consumers.get(&o.epoch, 2*time.Microsecond, o.everyConsumer) {
		if vhost := c.Queue.VHost().Name(); seen[vhost] && (at.VHost == "" || at.VHost == vhost) && (at.Name == "" || at.Name == c.Queue.Name) {
			list = append(list, c)
		}
	}
	return list, nil
}

// everyConsumer examines every unacked delivery.
func (o *Operations) everyConsumer() (list []Consumer, n int) {
	for _, h := range o.Server.UnackedHolders() {
		one := Consumer{UnackedHolder: h, Client: ClientOf(h.Properties)}
		if h.Oldest != 0 {
			one.OldestMillis = o.Broker.UnixMillis(h.Oldest)
		}
		if h.Earliest != 0 {
			one.EarliestMillis = o.Broker.UnixMillis(h.Earliest)
		}
		list = append(list, one)
		n += 1 + h.Unacked
	}
	slices.SortStableFunc(list, func(x, y Consumer) int {
		return cmp.Or(cmp.Compare(y.PastDeadline, x.PastDeadline), cmp.Compare(y.Unacked, x.Unacked), cmp.Compare(x.Queue.VHost().Name(), y.Queue.VHost().Name()),
			cmp.Compare(x.Queue.Name, y.Queue.Name), cmp.Compare(x.Connection, y.Connection), cmp.Compare(x.Channel, y.Channel), cmp.Compare(x.Tag, y.Tag))
	})
	return list, n
}
