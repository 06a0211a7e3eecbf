package observe

import (
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
		"x-max-length": tapLength, "x-overflow": "drop-head", "x-message-ttl": tapAge.Milliseconds()})
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

// ended reports whether no more messages arrive: RabbitMQ has closed the tap.
func (t *tap) ended() bool { return t.gone.Load() }

// waiting returns how many messages have not been delivered to us yet.
func (t *tap) waiting(c *counter) (int, error) {
	ready, _, err := c.count(t.name)
	return ready, err
}

// close deletes the tap.
func (t *tap) close() {
	go t.ch.Close() // it waits for the answer
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
