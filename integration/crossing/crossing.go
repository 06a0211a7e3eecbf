package crossing

import (
	"context"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/Azure/go-amqp"
	amqp091 "github.com/rabbitmq/amqp091-go"
)

// RabbitMQ is what Record returned for RabbitMQ 4.3.6.
//
//go:embed rabbitmq.txt
var RabbitMQ string

const (
	queueName  = "crossing"
	dyingQueue = "crossing-dying"
)

// recorder has a client of each protocol.
type recorder struct {
	ctx      context.Context
	url, key string // key is of what is published over 0-9-1
	channel  *amqp091.Channel
	conn10   *amqp.Conn
	sender   *amqp.Sender   // nil: there is none
	receiver *amqp.Receiver // the same
	out      strings.Builder
}

// Record publishes each message of the lists over one protocol, consumes it over the other, and returns a line for each, with
// everything that the consumer sees. url is an AMQP URL with a user's name and password.
func Record(ctx context.Context, url string) (string, error) {
	conn, err := amqp091.Dial(url)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	r := &recorder{ctx: ctx, url: url, key: queueName}
	if r.channel, err = conn.Channel(); err == nil {
		_, err = r.channel.QueueDeclare(queueName, true, false, false, false, nil)
	}
	if err != nil {
		return "", err
	}
	conn10, err := amqp.Dial(ctx, url, nil)
	if err != nil {
		return "", err
	}
	r.conn10 = conn10
	defer func() { _ = r.conn10.Close() }()
	for _, m := range from10 {
		if err := r.to091(m.name, m.message); err != nil {
			return "", fmt.Errorf("%s: %w", m.name, err)
		}
	}
	for _, m := range from091 {
		if err := r.to10(m.name, m.publishing); err != nil {
			return "", fmt.Errorf("%s: %w", m.name, err)
		}
	}
	dying := amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queueName}
	if _, err = r.channel.QueueDeclare(dyingQueue, true, false, false, false, dying); err == nil {
		r.key = dyingQueue
		err = r.to10("a dead letter", amqp091.Publishing{Expiration: "1"})
	}
	return r.out.String(), err
}

func (r *recorder) line(direction, name string, fields []string) {
	fmt.Fprintf(&r.out, "%s %s: %s\n", direction, name, strings.Join(fields, ", "))
}

func (r *recorder) to091(name string, m *amqp.Message) error {
	if r.sender == nil {
		session, err := r.conn10.NewSession(r.ctx, nil)
		if err == nil {
			r.sender, err = session.NewSender(r.ctx, "/queues/"+queueName, nil)
		}
		if err != nil {
			return err
		}
	}
	if err := r.sender.Send(r.ctx, m, nil); err != nil {
		r.sender = nil
		condition := err.Error()
		if e, ok := errors.AsType[*amqp.Error](err); ok {
			condition = string(e.Condition)
		}
		r.line("1.0 to 0-9-1", name, []string{"refused, " + condition})
		again, err := amqp.Dial(r.ctx, r.url, nil) // on a connection where it has ended a session, RabbitMQ 4.0 may not answer to the next one
		if err == nil {
			_ = r.conn10.Close()
			r.conn10 = again
		}
		return err
	}
	d, ok, err := r.channel.Get(queueName, true)
	for begun := time.Now(); err == nil && !ok && time.Since(begun) < 5*time.Second; d, ok, err = r.channel.Get(queueName, true) {
		time.Sleep(5 * time.Millisecond)
	}
	if err != nil || !ok {
		return fmt.Errorf("there is no message: %w", err)
	}
	var fields []string
	add := func(name string, v any) {
		if !reflect.ValueOf(v).IsZero() {
			fields = append(fields, name+" "+show(v))
		}
	}
	add("content-type", d.ContentType)
	add("content-encoding", d.ContentEncoding)
	add("delivery-mode", d.DeliveryMode)
	add("priority", d.Priority)
	add("correlation-id", d.CorrelationId)
	add("reply-to", d.ReplyTo)
	add("expiration", d.Expiration)
	add("message-id", d.MessageId)
	if !d.Timestamp.IsZero() {
		fields = append(fields, "timestamp "+show(d.Timestamp))
	}
	add("type", d.Type)
	add("user-id", d.UserId)
	add("app-id", d.AppId)
	for _, key := range slices.Sorted(maps.Keys(d.Headers)) {
		fields = append(fields, "header "+short(key)+" "+show(d.Headers[key]))
	}
	r.line("1.0 to 0-9-1", name, append(fields, "body "+show(d.Body)))
	return nil
}

func (r *recorder) to10(name string, p amqp091.Publishing) error {
	if p.Body == nil {
		p.Body = []byte("b")
	}
	if err := r.channel.PublishWithContext(r.ctx, "", r.key, false, false, p); err != nil {
		return err
	}
	if r.receiver == nil {
		conn, err := amqp.Dial(r.ctx, r.url, nil)
		if err != nil {
			return err
		}
		session, err := conn.NewSession(r.ctx, nil)
		if err == nil {
			r.receiver, err = session.NewReceiver(r.ctx, "/queues/"+queueName, nil)
		}
		if err != nil {
			return err
		}
	}
	m, err := r.receiver.Receive(r.ctx, nil)
	if e, ok := errors.AsType[*amqp.Error](err); ok { // and the message goes back
		r.receiver = nil
		r.line("0-9-1 to 1.0", name, []string{"the connection ends, " + string(e.Condition)})
		if _, err = r.channel.QueueDelete(queueName, false, false, false); err == nil {
			_, err = r.channel.QueueDeclare(queueName, true, false, false, false, nil)
		}
		return err
	}
	if err != nil {
		return err
	}
	if err := r.receiver.AcceptMessage(r.ctx, m); err != nil {
		return err
	}
	var fields []string
	h := m.Header
	if h == nil {
		h = &amqp.MessageHeader{Priority: 4}
	}
	fields = append(fields, fmt.Sprintf("durable %v", h.Durable), fmt.Sprintf("priority %d", h.Priority))
	if h.TTL != 0 {
		fields = append(fields, "ttl "+h.TTL.String())
	}
	annotations := map[string]any{}
	for key, v := range m.Annotations {
		annotations[fmt.Sprint(key)] = v
	}
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		fields = append(fields, "annotation "+short(key)+" "+show(annotations[key]))
	}
	if m.Properties != nil {
		p := reflect.ValueOf(*m.Properties)
		for i := range p.NumField() {
			if f := p.Field(i); !f.IsZero() {
				fields = append(fields, p.Type().Field(i).Name+" "+show(f.Interface()))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.ApplicationProperties)) {
		fields = append(fields, "property "+short(key)+" "+show(m.ApplicationProperties[key]))
	}
	switch {
	case m.Value != nil:
		fields = append(fields, "value "+show(m.Value))
	case m.Sequence != nil:
		fields = append(fields, "sequence "+show(m.Sequence))
	default:
		fields = append(fields, fmt.Sprintf("data %q", m.Data))
	}
	r.line("0-9-1 to 1.0", name, fields)
	return nil
}

// short is a text, or how long it is.
func short(s string) string {
	if len(s) > 100 {
		return fmt.Sprintf("%s... of %d octets", s[:3], len(s))
	}
	return s
}

// show is a value with its type.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("%q", short(v))
	case []byte:
		if len(v) > 100 {
			return fmt.Sprintf("binary of %d octets", len(v))
		}
		return "binary " + hex.EncodeToString(v)
	case time.Time:
		if time.Since(v).Abs() < time.Hour {
			return "now"
		}
		return v.UTC().Format(time.RFC3339Nano)
	case amqp.UUID:
		return "uuid " + v.String()
	case amqp091.Table:
		return show(map[string]any(v))
	case map[any]any:
		named := map[string]any{}
		for key, e := range v {
			named[fmt.Sprintf("%T %v", key, key)] = e
		}
		return show(named)
	case map[string]any:
		var all []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			all = append(all, key+" "+show(v[key]))
		}
		return "{" + strings.Join(all, "; ") + "}"
	}
	switch x := reflect.ValueOf(v); x.Kind() {
	case reflect.Pointer:
		return show(x.Elem().Interface())
	case reflect.Slice:
		var all []string
		for i := range x.Len() {
			all = append(all, show(x.Index(i).Interface()))
		}
		return "[" + strings.Join(all, "; ") + "]"
	}
	return fmt.Sprintf("%T %v", v, v)
}
