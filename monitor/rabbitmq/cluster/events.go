package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"curfew/broker/deadline"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// EventKind is what has happened.
type EventKind uint8

const (
	// Changed: take an inventory. A queue was declared, or a policy or operator policy was set or cleared. It is the first event, too, and comes after
	// each lost connection, since earlier events may be missing.
	Changed EventKind = iota
	ConsumerCreated
	QueueDeleted
	BindingChanged
)

// Event is something that happened in the virtual host of the address.
type Event struct {
	Kind        EventKind
	Queue       string // or empty
	ConsumerTag string // of consumers
}

// ErrNoEvents: RabbitMQ does not publish its events, since the plugin
// rabbitmq_event_exchange is not enabled, or the user may not read its exchange. The
// caller polls then.
var ErrNoEvents = errors.New("RabbitMQ does not publish its events")

const (
	eventExchange = "amq.rabbitmq.event"
	// eventBacklog bounds the events that wait for Curfew; the oldest are dropped.
	eventBacklog = 10_000
)

// Events calls fn with each event, one after another, until ctx ends. It connects again by
// itself. The error is that of ctx, or ErrNoEvents with the reason. Since a full backlog
// drops events silently, the caller takes an inventory now and then as well.
//
// The exchange is in the virtual host of the address or, where the plugin puts it, in /.
// There the user needs the permissions to read it and to configure, write and read
// curfew.tap.*. The exchange has the events of the whole broker; only those of the
// address's virtual host are passed on.
//
// Source: RabbitMQ: Event Exchange Plugin.
func (c *Cluster) Events(ctx context.Context, fn func(Event)) error {
	homes := []string{c.Address.VHost}
	if c.Address.VHost != "/" {
		homes = append(homes, "/")
	}
	for {
		var refused []error
		lost := false
		for _, home := range homes {
			err := c.eventsIn(ctx, home, fn)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if reason, ok := errors.AsType[*noExchange](err); ok {
				refused = append(refused, fmt.Errorf("virtual host %s: %w", home, reason.error))
				continue
			}
			lost = true // it worked, or the connection broke: begin again
			break
		}
		if !lost {
			return fmt.Errorf("%w: %w", ErrNoEvents, errors.Join(refused...))
		}
		deadline.Sleep(ctx, firstPause)
	}
}

// noExchange is the reason why we get no events in a virtual host.
type noExchange struct{ error }

// eventsIn reads events until the connection is lost.
func (c *Cluster) eventsIn(ctx context.Context, home string, fn func(Event)) error {
	conn, err := c.round(ctx, home, "events", heartbeat)
	if home != c.Address.VHost && forbidden(err) {
		return &noExchange{errors.New("the user may not enter it")}
	}
	if err != nil {
		conn, err = c.connect(ctx, home, "events", heartbeat)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	deliveries, err := subscribe(conn)
	if err != nil {
		return err
	}
	fn(Event{Kind: Changed})
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case d, ok := <-deliveries:
			if !ok {
				return nil
			}
			if e, ok := readEvent(d, c.Address.VHost); ok {
				fn(e)
			}
		}
	}
}

// forbidden reports whether the broker has refused the virtual host.
func forbidden(err error) bool {
	refused, ok := errors.AsType[*amqp091.Error](err)
	return ok && (refused.Code == amqp091.NotAllowed || refused.Code == amqp091.AccessRefused)
}

// subscribe binds a queue that is deleted with the connection. Error: *noExchange if the
// broker refuses.
func subscribe(conn *amqp091.Connection) (<-chan amqp091.Delivery, error) {
	ch, err := conn.Channel()
	if err != nil {
		return nil, err
	}
	q, err := ch.QueueDeclare(TapName("events"), false, true, true, false, amqp091.Table{"x-max-length": eventBacklog, "x-dead-letter-exchange": TapPrefix + "none"})
	for _, key := range []string{"consumer.created", "queue.*", "binding.*", "policy.*", "parameter.*"} {
		if err == nil {
			err = ch.QueueBind(q.Name, key, eventExchange, false, nil)
		}
	}
	var deliveries <-chan amqp091.Delivery
	if err == nil {
		deliveries, err = ch.Consume(q.Name, "", true, true, false, false, nil)
	}
	if refused, ok := errors.AsType[*amqp091.Error](err); ok && !conn.IsClosed() && refused.Server {
		return nil, &noExchange{errors.New(refused.Reason)}
	}
	return deliveries, err
}

// readEvent translates a delivery of the event exchange; false: it is of no interest.
func readEvent(d amqp091.Delivery, vhost string) (e Event, ok bool) {
	text := func(key string) string {
		s, _ := d.Headers[key].(string)
		return s
	}
	if text("vhost") != vhost {
		return e, false
	}
	switch d.RoutingKey {
	case "consumer.created":
		e.Kind, e.Queue, e.ConsumerTag = ConsumerCreated, text("queue"), text("consumer_tag")
	case "queue.created":
		e.Queue = text("name")
	case "queue.deleted":
		e.Kind, e.Queue = QueueDeleted, text("name")
	case "binding.created", "binding.deleted":
		if text("source_name") == "" || text("destination_kind") != "queue" {
			return e, false
		}
		e.Kind, e.Queue = BindingChanged, text("destination_name")
	case "policy.set", "policy.cleared":
	case "parameter.set", "parameter.cleared":
		if text("component") != "operator_policy" {
			return e, false
		}
	default:
		return e, false
	}
	return e, !strings.HasPrefix(e.Queue, NamePrefix)
}
