package operate

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/deadletters"
)

// ErrQueueFull: a queue is full and refuses what is published (x-overflow).
var ErrQueueFull = errors.New("a queue is full and refuses the message")

// maxShortText is the longest name or text in AMQP, in octets.
const maxShortText = 255

// Publication is a message to publish. The exchange "" is the default one.
type Publication struct {
	Exchange   ExchangeName
	RoutingKey string
	Properties amqp.Properties
	Body       []byte
}

// MayPublish checks the permissions for Publish, for faces that read a long message after it. Errors: those of basic.publish, or deadletters.ErrBlocked.
func (o *Operations) MayPublish(_ context.Context, a Actor, to ExchangeName) error {
	vh, err := o.vhost(&a, Publish, to.VHost)
	if err == nil {
		err = o.Broker.RightsOf(a.Name, vh.Name()).Exchange(access.Write, to.Name)
	}
	if err == nil {
		_, err = vh.Exchanges.Get(to.Name)
	}
	if err == nil {
		err = o.blocked()
	}
	return err
}

func (o *Access) blocked() error {
	if why, _ := o.Broker.Alarm.Reason(); why != "" {
		return fmt.Errorf("%w: %s", deadletters.ErrBlocked, why)
	}
	return nil
}

// Publish publishes one message, and waits until it is as durable as a confirm promises. routed is false if no queue took it. Errors: *Invalid,
// deadletters.ErrBlocked, ErrQueueFull, or the broker's.
func (o *Operations) Publish(ctx context.Context, a Actor, m *Publication) (routed bool, err error) {
	routed, err = o.publish(ctx, &a, m)
	o.Record(a, Publish, QueueName{VHost: m.Exchange.VHost}, err,
		zap.String("exchange", m.Exchange.Name), zap.String("routing_key", m.RoutingKey), zap.Bool("routed", routed), zap.Int("bytes", len(m.Body)))
	return routed, err
}

func (o *Operations) publish(ctx context.Context, a *Actor, m *Publication) (routed bool, err error) {
	vh, err := o.vhost(a, Publish, m.Exchange.VHost)
	if err == nil {
		err = m.check(o.Broker.MaxMessageBytes())
	}
	if err == nil {
		err = o.blocked()
	}
	if err != nil {
		return false, err
	}
	if routed, err = enter(ctx, o.Broker.RightsOf(a.Name, vh.Name()), vh, &broker.Publication{
		Exchange: []byte(m.Exchange.Name), RoutingKey: []byte(m.RoutingKey), Properties: m.Properties.Append(nil), Body: m.Body,
	}); err != nil {
		return false, err
	}
	return routed, o.Commit(ctx)
}

// enter makes the message enter its queues, in a turn if it is costly.
func enter(ctx context.Context, r *broker.Rights, vh *broker.VHost, m *broker.Publication) (routed bool, err error) {
	p := r.NewPublisher(vh)
	p.TakesTurns = true
	routed, err = p.Add(m)
	if errors.Is(err, broker.ErrCostly) {
		if !r.BeginTurn(true, ctx.Done()) {
			return false, context.Cause(ctx)
		}
		defer r.EndTurn()
		routed, err = p.Add(m)
	}
	if err == nil && len(p.Flush(nil)) > 0 {
		err = ErrQueueFull
	}
	return routed, err
}

// alivenessQueue is the queue that a test message goes through, as in RabbitMQ.
const alivenessQueue = "aliveness-test"

// TryMessage sends one message through a queue of its own, and reports whether it arrived. It is for health checks, and is not recorded.
func (o *Operations) TryMessage(ctx context.Context, a Actor, vhost string) (arrived bool, err error) {
	vh, err := o.vhost(&a, TryMessage, vhost)
	if err != nil {
		return false, err
	}
	q, err := o.Broker.RightsOf(a.Name, vh.Name()).DeclareQueue(vh, Nobody{}, alivenessQueue, broker.QueueDeclare{})
	if err == nil {
		_, err = o.publish(ctx, &a, &Publication{Exchange: ExchangeName{VHost: vhost}, RoutingKey: alivenessQueue, Body: []byte("test_message")})
	}
	if err != nil {
		return false, err
	}
	return q.Messages.Get(true, func(*broker.Delivery) {})
}

func (m *Publication) check(maxBody int) error {
	if len(m.Body) > maxBody {
		return &Invalid{fmt.Sprintf("406 PRECONDITION_FAILED - message size %d is larger than configured max size %d", len(m.Body), maxBody)}
	}
	if len(m.RoutingKey) > maxShortText || len(m.Exchange.Name) > maxShortText {
		return &Invalid{"routing key is longer than 255 octets"}
	}
	for _, one := range amqp.NamedProperties {
		if text, is := one.Of(&m.Properties).(*string); is && len(*text) > maxShortText {
			return &Invalid{one.Name + " is longer than 255 octets"}
		}
	}
	return nil
}
