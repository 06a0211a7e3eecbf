package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

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

func (o *Operations) blocked() error {
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

// NewMessage is a message to publish, as a form has it. The exchange "" is the default one.
type NewMessage struct {
	Exchange        string `json:"exchange" log:"exchange" doc:"Empty: the default exchange, which routes to the queue named by the key."`
	VHost           string `json:"vhost" start:"/"`
	Key             string `json:"routing_key" form:"key" log:"routing_key"`
	Expires         *int64 `json:"expiration" label:"Expires after" is:"span" doc:"In ms, or as 90s, 10m or 24h. Empty: the queue's time to live."`
	Body            string `json:"body" is:"lines"`
	ContentType     string `json:"content_type" start:"application/json"`
	Persistent      bool   `json:"persistent" label:"survives a restart" start:"1"`
	Deadline        *int64 `json:"deadline" label:"Deadline (UTC)" is:"instant" more:"Deadline at an instant, headers and other properties" doc:"Instead of a time to live. It sets the header x-expires-at."`
	Priority        *int64 `json:"priority" more:"Deadline at an instant, headers and other properties"`
	Headers         Table  `json:"headers" more:"Deadline at an instant, headers and other properties" doc:"A JSON object, for example {\"tenant\": \"acme\"}."`
	MessageID       string `json:"message_id" more:"Deadline at an instant, headers and other properties"`
	CorrelationID   string `json:"correlation_id" more:"Deadline at an instant, headers and other properties"`
	Type            string `json:"type" more:"Deadline at an instant, headers and other properties"`
	ReplyTo         string `json:"reply_to" more:"Deadline at an instant, headers and other properties"`
	AppID           string `json:"app_id" more:"Deadline at an instant, headers and other properties"`
	ContentEncoding string `json:"content_encoding" more:"Deadline at an instant, headers and other properties"`
}

// Check implements Checker.
func (m NewMessage) Check() error {
	switch {
	case m.Expires != nil && *m.Expires < 0:
		return &Wrong{Field: "expiration", Text: "a time to live is 0 or more"}
	case m.Priority != nil && (*m.Priority < 0 || *m.Priority > 255):
		return &Wrong{Field: "priority", Text: "a priority is from 0 to 255"}
	}
	return nil
}

// properties are the message's. An empty field is a property that is not set.
func (m *NewMessage) properties() Properties {
	p := Properties{
		Headers: m.Headers, ContentType: m.ContentType, ContentEncoding: m.ContentEncoding, CorrelationID: m.CorrelationID, ReplyTo: m.ReplyTo, MessageID: m.MessageID, Type: m.Type, AppID: m.AppID,
	}
	if m.Expires != nil {
		p.Expiration = strconv.FormatInt(*m.Expires, 10)
	}
	if p.Headers = maps.Clone(p.Headers); m.Deadline != nil {
		if p.Headers == nil {
			p.Headers = Table{}
		}
		p.Headers["x-expires-at"] = *m.Deadline
	}
	if m.Priority != nil {
		p.Priority = uint8(*m.Priority)
	}
	if m.Persistent {
		p.DeliveryMode = 2
	}
	return p
}

// Routed is what became of a message that was published.
type Routed bool

// Words implements Effect.
func (r Routed) Words() (sentences []string, harm, more bool) {
	if r {
		return []string{"Published, and a queue took it."}, false, false
	}
	return []string{"Published, and no queue took it: nothing is bound to the exchange for this key. The message is lost."}, true, false
}

// PublishForm is Publish as a form.
var PublishForm = Define(Op{
	Name: Publish, Title: "Publish a message", Rule: Rule{Role: Management},
	Page: Page{On: "/publish", Title: "Publish a message", Tab: "/exchanges", Parent: "/exchanges", Up: "Exchanges", Button: "Publish", Stays: true, May: func(o *Operations, a Actor, asked any) bool {
		m := asked.(NewMessage)
		if m.Exchange == "" && m.Key == "" {
			return MayChange(o, a, m.VHost)
		}
		return MayExchange(o, a, access.Write, cmp.Or(m.VHost, "/"), m.Exchange)
	}},
}, func(ctx context.Context, c *Call, m NewMessage) (Routed, error) {
	routed, err := c.publish(ctx, &c.Actor, &Publication{Exchange: ExchangeName{m.VHost, m.Exchange}, RoutingKey: m.Key, Properties: m.properties(), Body: []byte(m.Body)})
	c.Log(zap.Bool("routed", routed))
	c.Log(zap.Int("bytes", len(m.Body)))
	return Routed(routed), err
})

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
