package observe

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/monitor/rabbitmq/cluster"
)

const (
	// tapLength bounds how many messages wait in a tap, tapAge how long they do. Beyond that
	// copies are lost: a tap that comes near its length is replaced.
	tapLength = 100_000
	tapAge    = time.Minute
	// tapPrefetch bounds the messages on their way to us.
	tapPrefetch = 1_000
)

// tap is a queue with the same bindings as the watched one. It is deleted with its connection.
type tap struct {
	name       string
	ch         *amqp091.Channel
	deliveries <-chan amqp091.Delivery
	gone       atomic.Bool
}

func openTap(conn *amqp091.Connection, queue string, bindings []cluster.Binding) (*tap, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	t := &tap{name: cluster.TapName(queue), ch: ch}
	if err := t.bind(bindings); err != nil {
		ch.Close()
		return nil, err
	}
	return t, nil
}

func (t *tap) bind(bindings []cluster.Binding) (err error) {
	if err := t.ch.Qos(tapPrefetch, 0, false); err != nil {
		return err
	}
	_, err = t.ch.QueueDeclare(t.name, false, true, true, false, amqp091.Table{
		"x-max-length": tapLength, "x-overflow": "drop-head", "x-message-ttl": tapAge.Milliseconds(),
		"x-dead-letter-exchange": cluster.TapPrefix + "none"}) // there is none: copies reach no application, whatever a policy for all queues says
	if err != nil {
		return err
	}
	// Consuming comes first: the tap is deleted with its consumer, so nothing is left of a tap that was only half set up.
	if t.deliveries, err = t.ch.Consume(t.name, "", false, true, false, false, nil); err != nil {
		return err
	}
	for _, b := range bindings {
		if err := t.ch.QueueBind(t.name, b.RoutingKey, b.Exchange, false, b.Arguments); err != nil {
			return err
		}
	}
	return nil
}

// read hands over each message that arrives, until the tap is closed.
func (t *tap) read(enter func(*tap, *amqp091.Delivery)) {
	unacked := 0
	for d := range t.deliveries {
		enter(t, &d)
		if unacked++; unacked >= tapPrefetch/4 {
			_ = t.ch.Ack(d.DeliveryTag, true) // an error ends the deliveries too
			unacked = 0
		}
	}
	t.gone.Store(true)
}

// counter asks how many messages are ready. It opens a new channel when RabbitMQ has closed
// the last one, as it does when it refuses.
type counter struct {
	conn *amqp091.Connection
	ch   *amqp091.Channel
}

func (c *counter) count(queue string) (ready, consumers int, err error) {
	if c.ch == nil || c.ch.IsClosed() {
		if c.ch, err = c.conn.Channel(); err != nil {
			return 0, 0, err
		}
	}
	q, err := c.ch.QueueDeclarePassive(queue, false, false, false, false, nil)
	return q.Messages, q.Consumers, err
}

// tapped are the types of exchanges that route a message to every queue with a matching
// binding, so that one more binding takes nothing away from another queue.
var tapped = []string{"direct", "fanout", "topic", "headers"}

// Untappable returns why a tap cannot show what enters a queue; empty: it can. bindings are
// those of the whole virtual host.
func Untappable(i *cluster.Inventory, q *cluster.Queue, exchanges map[string]cluster.Exchange, bindings []cluster.Binding) string {
	if q.Type == cluster.Stream {
		return "It is a stream: its messages have no deadlines."
	}
	if q.Exclusive {
		return "It is exclusive: only the connection that declared it can count its messages."
	}
	if _, ranked := q.Arguments["x-max-priority"]; ranked {
		return "Messages overtake one another by their priorities, so their number does not show which of them wait."
	}
	if q.HasMaxLength() && q.Overflow() != "drop-head" {
		return "It refuses messages when it is full, and its exchanges do not show that."
	}
	bound := false
	for _, b := range bindings {
		if b.Queue != q.Name {
			continue
		}
		x, known := exchanges[b.Exchange]
		kind := x.Type
		if kind == "x-delayed-message" {
			kind, _ = x.Arguments["x-delayed-type"].(string)
		}
		if !known || !slices.Contains(tapped, kind) {
			return fmt.Sprintf("Exchange %s of type %q routes a message to only one of several queues, or not by bindings: a tap would take messages away, or miss them.", b.Exchange, x.Type)
		}
		bound = true
	}
	if !bound {
		return "Only the default exchange routes to it, and a tap cannot be bound to that."
	}
	for at := range i.Queues {
		from := &i.Queues[at]
		if dlx, ok := from.DeadLetterExchange(); ok && dlx == "" {
			if key, ok := from.Text("dead-letter-routing-key"); ok && key == q.Name {
				return fmt.Sprintf("Dead letters of queue %s reach it through the default exchange, which cannot be tapped.", from.Name)
			}
		}
	}
	return ""
}
