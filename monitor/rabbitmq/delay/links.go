package delay

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/monitor/rabbitmq/keeper"
)

const (
	// perLink is how many messages a link holds. RabbitMQ does not scan them, as it does those of a channel.
	perLink = 20_000
	// perSession is how many links an AMQP 1.0 session has: RabbitMQ allows 256.
	perSession = 200
	// LinkPriority is the consumer priority of Curfew's AMQP 1.0 links. RabbitMQ lists such a consumer under a number, without its connection, link or
	// container: only its arguments tell whose it is. So this is one that nobody else has.
	LinkPriority = 15673
)

// links are the AMQP 1.0 side of a session: in AMQP 1.0 a message can be addressed when it is discarded, and be put aside.
type links struct {
	conn    *amqp.Conn    // nil: none yet
	session *amqp.Session // that of the last link
	opened  int
}

func (l *links) close() {
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

// openLink adds a channel of AMQP 1.0.
func (s *session) openLink() (err error) {
	limited, cancel := context.WithTimeout(s.ctx, callTimeout)
	defer cancel()
	if s.links.opened%perSession == 0 {
		if s.links.session, err = s.links.conn.NewSession(limited, nil); err != nil {
			return fmt.Errorf("open a session: %w", err)
		}
	}
	s.links.opened++
	holds := min(perLink, s.k.o.MaxMessages)
	o := &amqp.ReceiverOptions{Credit: int32(holds), Name: keeper.ConsumerTag(s.k.o.Name, s.links.opened), Properties: map[string]any{"rabbitmq:priority": int32(LinkPriority)}}
	if s.latest {
		o.Properties["rabbitmq:consumer-timeout"] = uint32(math.MaxUint32) // ms: seven weeks
	}
	receiver, err := s.links.session.NewReceiver(limited, "/queues/"+url.PathEscape(s.k.o.Queue), o)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	l := &line10{receiver: receiver, ctx: s.ctx, messages: map[uint64]*amqp.Message{}}
	c := s.add(l, holds)
	s.wg.Go(func() {
		fingerprints := keeper.NewFingerprints()
		for tag := uint64(1); ; tag++ {
			d, err := l.receive(tag)
			if err != nil {
				s.k.log.Debug("an AMQP 1.0 link has ended", zap.Error(err))
				if alone, _ := errors.AsType[*amqp.LinkError](err); alone == nil || unreadable(err) != nil {
					s.fail(fmt.Errorf("AMQP 1.0: %w", err))
					return
				}
				break
			}
			s.receive(c, tag, fingerprints, d)
		}
		s.lost(c)
	})
	return nil
}

// unreadable is what is wrong if RabbitMQ has ended a session since it cannot convert a message to AMQP 1.0, such as one with a decimal in a header; nil: it
// has not. It does that again each time that it is to deliver the message.
func unreadable(err error) error {
	ended, _ := errors.AsType[*amqp.Error](err)
	if ended == nil || ended.Condition != amqp.ErrCondInternalError || strings.HasPrefix(ended.Description, "Connection forced") { // it is shutting down
		return nil
	}
	what, _, _ := strings.Cut(ended.Description, "\n")
	return fmt.Errorf("RabbitMQ fails to deliver a message over AMQP 1.0: %s", what)
}

// line10 is a line of AMQP 1.0.
type line10 struct {
	receiver *amqp.Receiver
	ctx      context.Context

	mu       sync.Mutex
	messages map[uint64]*amqp.Message // that are held, without their bodies
}

// receive waits for a message, which has this tag from now on.
func (l *line10) receive(tag uint64) (*amqp091.Delivery, error) {
	m, err := l.receiver.Receive(l.ctx, nil)
	if err != nil {
		return nil, err
	}
	d := deliveryOf(m)
	m.Data, m.Value, m.Sequence, m.Annotations, m.ApplicationProperties, m.Properties = nil, nil, nil, nil, nil, nil
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages[tag] = m
	return d, nil
}

func (l *line10) settle(e *effect) error {
	l.mu.Lock()
	m := l.messages[e.tag]
	delete(l.messages, e.tag)
	l.mu.Unlock()
	switch {
	case m == nil:
		return nil
	case e.ack:
		return l.receiver.AcceptMessage(l.ctx, m)
	case e.again:
		return l.receiver.ReleaseMessage(l.ctx, m)
	}
	o := &amqp.ModifyMessageOptions{UndeliverableHere: e.aside == 0, Annotations: amqp.Annotations{}}
	if e.to != "" {
		o.Annotations[toHeader] = e.to
	}
	if e.aside > 0 {
		o.Annotations[stampHeader] = e.stamp
	}
	if e.until > 0 {
		o.Annotations[deliveryTime] = e.until.UnixMilli() + 1
	}
	return l.receiver.ModifyMessage(l.ctx, m, o)
}

// close gives everything back: it is the end of the link.
func (l *line10) close(bool) {
	limited, cancel := context.WithTimeout(context.WithoutCancel(l.ctx), closeTimeout)
	defer cancel()
	_ = l.receiver.Close(limited)
}

// deliveryOf is the same message in AMQP 0-9-1, as RabbitMQ would have delivered it. Values of headers may have other types (plain).
func deliveryOf(m *amqp.Message) *amqp091.Delivery {
	d := &amqp091.Delivery{Headers: amqp091.Table{}, Body: m.GetData()}
	maps.Copy(d.Headers, m.ApplicationProperties)
	deaths, _ := m.Annotations["x-opt-deaths"].([]map[any]any)
	for name, v := range m.Annotations {
		switch name {
		case "x-exchange":
			d.Exchange, _ = v.(string)
		case "x-routing-key":
			d.RoutingKey, _ = v.(string)
		case "x-basic-type":
			d.Type, _ = v.(string)
		case "x-opt-rabbitmq-received-time":
			if at, ok := v.(time.Time); ok {
				d.Headers["timestamp_in_ms"] = at.UnixMilli()
			}
		default:
			d.Headers[fmt.Sprint(name)] = v
		}
	}
	if deaths != nil { // without them x-death is a publisher's own, of maps that nobody reads
		d.Headers["x-death"] = deathsOf(deaths)
	}
	if h := m.Header; h != nil {
		d.Redelivered, d.Priority = h.DeliveryCount > 0 || !h.FirstAcquirer, h.Priority
		if h.Durable {
			d.DeliveryMode = amqp091.Persistent
		}
		if h.TTL > 0 && deaths == nil { // dead letters have none, but the header that RabbitMQ makes still does
			d.Expiration = strconv.FormatInt(h.TTL.Milliseconds(), 10)
		}
	}
	if p := m.Properties; p != nil {
		d.MessageId, d.CorrelationId, d.UserId = idOf(p.MessageID), idOf(p.CorrelationID), string(p.UserID)
		for to, from := range map[*string]*string{&d.ContentType: p.ContentType, &d.ContentEncoding: p.ContentEncoding, &d.AppId: p.GroupID, &d.ReplyTo: p.ReplyTo} {
			if from != nil {
				*to = *from
			}
		}
		if address, ok := strings.CutPrefix(d.ReplyTo, "/queues/"); ok { // RabbitMQ makes one of the name
			if name, err := url.PathUnescape(address); err == nil {
				d.ReplyTo = name
			}
		}
		if p.CreationTime != nil {
			d.Timestamp = *p.CreationTime
		}
	}
	return d
}

// idOf is a message-id as text.
func idOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case amqp.UUID:
		return urnUUID + v.String()
	}
	return fmt.Sprint(v)
}

// deathsOf is the header x-death for x-opt-deaths, with when each was last dead-lettered.
func deathsOf(deaths []map[any]any) (all []any) {
	for _, death := range deaths {
		one := amqp091.Table{}
		for key, value := range death {
			switch name := fmt.Sprint(key); name {
			case "count":
				one[name], _ = keeper.Integer(value)
			case "first-time":
				one["time"] = value
			case "ttl":
				one["original-expiration"] = fmt.Sprint(value)
			default:
				one[name] = value
			}
		}
		all = append(all, one)
	}
	return all
}
