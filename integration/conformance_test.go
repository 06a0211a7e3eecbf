package integration

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// answerLimit is how long a broker may take over what it should do at once or at a deadline of some 100 ms.
const answerLimit = time.Minute

// A vector asks a broker one question and has Curfew's answer. RabbitMQ's is the same unless rabbitmq says otherwise, and then why says
// the reason.
type vector struct {
	name     string
	ask      func(*session) string
	want     string
	rabbitmq string
	why      string
}

// TestConformance puts each vector to Curfew and to a RabbitMQ 3.10.
func TestConformance(t *testing.T) {
	t.Parallel()
	brokers := []struct{ name, url string }{
		{"curfew", startCurfew(t).url},
		{"rabbitmq", startRabbitMQ(t)},
	}
	for _, v := range slices.Concat(publishVectors, ttlVectors, deadLetterVectors, errorVectors, argumentVectors(), typeVectors, consumerVectors, wireVectors) {
		for _, b := range brokers {
			t.Run(v.name+"/"+b.name, func(t *testing.T) {
				want := v.want
				if b.name == "rabbitmq" && v.rabbitmq != "" {
					want = v.rabbitmq
				}
				s := &session{t: t, url: b.url, conn: dial(t, b.url), name: dashed(v.name)}
				if got := v.ask(s); got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
			})
		}
	}
}

func dashed(name string) string { return strings.ReplaceAll(name, " ", "-") }

// session is one question's own connection and queue name; the name is the same on each broker, as error texts carry it.
type session struct {
	t    *testing.T
	url  string
	conn *amqp091.Connection
	name string
}

func (s *session) channel() *amqp091.Channel { return openChannel(s.t, s.conn) }

// queue declares a transient, non-durable queue that ends with the connection.
func (s *session) queue(ch *amqp091.Channel, name string, args amqp091.Table) string {
	s.t.Helper()
	_, err := ch.QueueDeclare(name, false, false, true, false, args)
	check(s.t, err)
	return name
}

// deadLettered declares the session's queue with args and a queue its dead letters go to; it returns the deliveries of the latter.
func (s *session) deadLettered(ch *amqp091.Channel, args amqp091.Table) <-chan amqp091.Delivery {
	s.t.Helper()
	dead := s.queue(ch, s.name+".dead", nil)
	s.queue(ch, s.name, with(args, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}))
	deliveries, err := ch.Consume(dead, "", true, true, false, false, nil)
	check(s.t, err)
	return deliveries
}

// marker sends a message that arrives in the dead-letter queue some milliseconds from now by way of a queue of its own.
func (s *session) marker(ch *amqp091.Channel, expiration string) {
	s.t.Helper()
	s.queue(ch, s.name+".marker", amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.name + ".dead"})
	s.publish(ch, s.name+".marker", amqp091.Publishing{Body: []byte("marker"), Expiration: expiration})
}

func (s *session) publish(ch *amqp091.Channel, queue string, message amqp091.Publishing) {
	s.t.Helper()
	check(s.t, ch.PublishWithContext(s.t.Context(), "", queue, false, false, message))
}

func (s *session) next(deliveries <-chan amqp091.Delivery) amqp091.Delivery {
	s.t.Helper()
	return received(s.t, deliveries)
}

// received is what comes next.
func received[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case x, open := <-from:
		if !open {
			t.Fatal("nothing comes: it has ended")
		}
		return x
	case <-time.After(answerLimit):
		t.Fatalf("nothing came within %v", answerLimit)
	}
	panic("unreachable")
}

// body is that of what arrives next.
func (s *session) body(deliveries <-chan amqp091.Delivery) string {
	s.t.Helper()
	return string(s.next(deliveries).Body)
}

// get fetches from a queue until it has something, and leaves it unacked.
func (s *session) get(ch *amqp091.Channel, queue string) (d amqp091.Delivery) {
	s.t.Helper()
	eventually(s.t, answerLimit, "a message in "+queue, func() (ok bool) {
		var err error
		d, ok, err = ch.Get(queue, false)
		check(s.t, err)
		return ok
	})
	return d
}

// closing runs f on a new channel and describes what the broker closed, or "nothing" after a round trip without complaint.
func (s *session) closing(f func(*amqp091.Channel) error) string {
	s.t.Helper()
	ch := s.channel()
	closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
	err := f(ch)
	if err == nil {
		err = ch.ExchangeDeclarePassive("amq.direct", "direct", true, false, false, false, nil)
	}
	if err == nil {
		return "nothing"
	}
	reason, isReason := errors.AsType[*amqp091.Error](err)
	if !isReason || reason == amqp091.ErrClosed {
		select {
		case reason = <-closed:
		case <-time.After(answerLimit):
			s.t.Fatalf("error %v, but nothing was closed", err)
		}
	}
	level := "channel"
	if _, err := s.conn.Channel(); err != nil {
		level = "connection"
	}
	return fmt.Sprintf("%s %d %s", level, reason.Code, reason.Reason)
}

func (s *session) declaring(args amqp091.Table) string {
	s.t.Helper()
	return s.closing(func(ch *amqp091.Channel) error {
		_, err := ch.QueueDeclare(s.name, false, false, true, false, args)
		return err
	})
}

func (s *session) expiring(expiration string) string {
	s.t.Helper()
	s.queue(s.channel(), s.name, nil)
	return s.closing(func(ch *amqp091.Channel) error {
		return ch.PublishWithContext(s.t.Context(), "", s.name, false, false, amqp091.Publishing{Expiration: expiration})
	})
}

func with(tables ...amqp091.Table) amqp091.Table {
	all := amqp091.Table{}
	for _, table := range tables {
		for name, value := range table {
			all[name] = value
		}
	}
	return all
}

// typed writes a header value with its Go type, which amqp091-go derives one to one from the type on the wire; times become "T".
func typed(v any) string {
	switch v := v.(type) {
	case amqp091.Table:
		var fields []string
		for name, value := range v {
			fields = append(fields, name+"="+typed(value))
		}
		sort.Strings(fields)
		return "F{" + strings.Join(fields, " ") + "}"
	case []any:
		var items []string
		for _, item := range v {
			items = append(items, typed(item))
		}
		return "A[" + strings.Join(items, " ") + "]"
	case string:
		return "S:" + v
	case int64:
		return fmt.Sprintf("l:%d", v)
	case time.Time:
		return "T"
	default:
		return fmt.Sprintf("%T:%v", v, v)
	}
}
