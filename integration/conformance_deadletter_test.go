package integration

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	noLastDeath = "x-last-death-* came with RabbitMQ 3.13"
	undelivered = "curfew.undeliverable"
)

// deadLetterVectors: what is written on a dead letter, where it goes and when it goes nowhere (RabbitMQ: Dead Letter Exchanges).
var deadLetterVectors = []vector{
	{name: "expired headers", ask: func(s *session) string {
		ch := s.channel()
		dead := s.deadLettered(ch, nil)
		s.publish(ch, s.name, amqp091.Publishing{Expiration: "50", MessageId: "id", Priority: 3, DeliveryMode: 2})
		d := s.next(dead)
		return fmt.Sprintf("%q %s %d %d %s", d.Expiration, d.MessageId, d.Priority, d.DeliveryMode, typed(d.Headers))
	}, want: `"" id 3 2 F{x-death=A[F{count=l:1 exchange=S: original-expiration=S:50 queue=S:expired-headers reason=S:expired ` +
		`routing-keys=A[S:expired-headers] time=T}] x-first-death-exchange=S: x-first-death-queue=S:expired-headers x-first-death-reason=S:expired ` +
		`x-last-death-exchange=S: x-last-death-queue=S:expired-headers x-last-death-reason=S:expired}`,
		rabbitmq: `"" id 3 2 F{x-death=A[F{count=l:1 exchange=S: original-expiration=S:50 queue=S:expired-headers reason=S:expired ` +
			`routing-keys=A[S:expired-headers] time=T}] x-first-death-exchange=S: x-first-death-queue=S:expired-headers x-first-death-reason=S:expired}`,
		why: noLastDeath},
	{name: "types on the wire", ask: func(s *session) string {
		tap := new(tapped)
		conn, err := amqp091.DialConfig(s.url, amqp091.Config{Dial: tap.dial})
		check(s.t, err)
		defer conn.Close()
		s.conn = conn
		ch := s.channel()
		dead := s.deadLettered(ch, nil)
		s.publish(ch, s.name, amqp091.Publishing{Expiration: "50"})
		s.next(dead)
		return tap.fields("x-death", "count", "reason", "queue", "time", "exchange", "routing-keys", "original-expiration",
			"x-first-death-queue", "x-first-death-reason", "x-first-death-exchange")
	}, want: "x-death:A count:l reason:S queue:S time:T exchange:S routing-keys:A original-expiration:S " +
		"x-first-death-queue:S x-first-death-reason:S x-first-death-exchange:S"},
	{name: "queue ttl has no original expiration", ask: func(s *session) string {
		ch := s.channel()
		dead := s.deadLettered(ch, amqp091.Table{"x-message-ttl": 50})
		s.publish(ch, s.name, amqp091.Publishing{})
		_, there := deaths(s.next(dead))[0]["original-expiration"]
		return fmt.Sprint(there)
	}, want: "false"},
	{name: "rejected", ask: func(s *session) string {
		ch := s.channel()
		dead := s.deadLettered(ch, nil)
		s.publish(ch, s.name, amqp091.Publishing{Expiration: "60000"})
		check(s.t, s.get(ch, s.name).Reject(false))
		d := s.next(dead)
		return fmt.Sprintf("%q %s", d.Expiration, summary(d))
	}, want: `"" rejected:rejected:1`},
	{name: "maxlen", ask: func(s *session) string {
		ch := s.channel()
		dead := s.deadLettered(ch, amqp091.Table{"x-max-length": 1})
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("old")})
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("new")})
		d := s.next(dead)
		return fmt.Sprintf("%s %s", d.Body, summary(d))
	}, want: "old maxlen:maxlen:1"},
	{name: "requeued after its deadline", ask: func(s *session) string {
		ch := s.channel()
		dead := s.deadLettered(ch, nil)
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("held"), Expiration: "100"})
		held := s.get(ch, s.name)
		s.marker(ch, "300")
		met := s.body(dead)
		check(s.t, held.Nack(false, true))
		d := s.next(dead)
		return fmt.Sprintf("%s, then %s %s %v", met, d.Body, summary(d), deaths(d)[0]["original-expiration"])
	}, want: "marker, then held requeued-after-its-deadline:expired:1 100"},
	{name: "acked after its deadline", ask: func(s *session) string {
		ch := s.channel()
		dead := s.deadLettered(ch, nil)
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("held"), Expiration: "100"})
		held := s.get(ch, s.name)
		s.marker(ch, "300")
		met := s.body(dead)
		return met + ", then " + s.closing(func(*amqp091.Channel) error { return held.Ack(false) })
	}, want: "marker, then nothing"},
	{name: "two deaths fold", ask: func(s *session) string {
		ch := s.channel()
		waiting := s.queue(ch, s.name+".retry", amqp091.Table{"x-message-ttl": 30, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.name})
		s.queue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": waiting})
		s.publish(ch, s.name, amqp091.Publishing{})
		check(s.t, s.get(ch, s.name).Reject(false))
		first := s.get(ch, s.name)
		check(s.t, first.Reject(false))
		second := s.get(ch, s.name)
		same := deaths(first)[1]["time"] == deaths(second)[1]["time"]
		return fmt.Sprint(summary(first), "; ", summary(second), "; same time ", same)
	}, want: "two-deaths-fold.retry:expired:1 two-deaths-fold:rejected:1; two-deaths-fold.retry:expired:2 two-deaths-fold:rejected:2; same time true"},
	{name: "cycle of expiries", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name+".dead", nil)
		dead, err := ch.Consume(s.name+".dead", "", true, true, false, false, nil)
		check(s.t, err)
		s.queue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": ""})
		s.publish(ch, s.name, amqp091.Publishing{Expiration: "50"})
		eventually(s.t, answerLimit, "the queue to be empty", func() bool { return s.messages(ch, s.name) == 0 })
		s.marker(ch, "300")
		return s.body(dead)
	}, want: "marker"},
	{name: "cycle of rejections", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": ""})
		s.publish(ch, s.name, amqp091.Publishing{})
		check(s.t, s.get(ch, s.name).Reject(false))
		check(s.t, s.get(ch, s.name).Reject(false))
		return summary(s.get(ch, s.name))
	}, want: "cycle-of-rejections:rejected:2"},
	{name: "copies", ask: func(s *session) string {
		ch := s.channel()
		dead := s.deadLettered(ch, nil)
		headers := amqp091.Table{"CC": []any{"cc-key"}, "BCC": []any{"bcc-key"}}
		s.publish(ch, s.name, amqp091.Publishing{Expiration: "50", Headers: headers})
		d := s.next(dead)
		_, blind := d.Headers["BCC"]
		return fmt.Sprintf("routing-keys=%s CC=%s BCC there: %v", typed(deaths(d)[0]["routing-keys"]), typed(d.Headers["CC"]), blind)
	}, want: "routing-keys=A[S:copies S:cc-key] CC=A[S:cc-key] BCC there: false",
		rabbitmq: "routing-keys=A[S:copies S:cc-key] CC=<nil>:<nil> BCC there: false",
		why:      "up to 3.12 RabbitMQ removed CC when the queue has a dead-letter routing key"},
	{name: "dead letter with keys for two hops", ask: func(s *session) string {
		ch := s.channel()
		s.hops(ch)
		s.queue(ch, "first", amqp091.Table{"x-dead-letter-exchange": s.name})
		s.publish(ch, "first", amqp091.Publishing{Expiration: "20", Headers: amqp091.Table{"BCC": []any{"second"}}})
		d := s.get(ch, s.name)
		return typed(deaths(d)[0]["routing-keys"])
	}, want: "A[S:first]"},
	{name: "dead letter with a key that has no binding", ask: func(s *session) string {
		ch := s.channel()
		s.alternated(ch)
		s.queue(ch, "bound", amqp091.Table{"x-dead-letter-exchange": s.name})
		s.publish(ch, "bound", amqp091.Publishing{Headers: amqp091.Table{"CC": []any{"nowhere"}}})
		check(s.t, s.get(ch, "bound").Reject(false))
		s.get(ch, s.name)
		return s.counts(ch, s.name+".alternate")
	}, want: "0"},
	{name: "dead letter by its death headers", ask: func(s *session) string {
		ch := s.channel()
		for name, binding := range map[string]amqp091.Table{
			"expired":  {"x-match": "all-with-x", "x-first-death-reason": "expired", "x-first-death-queue": s.name, "kind": "order"},
			"rejected": {"x-match": "any-with-x", "x-first-death-reason": "rejected"},
			"without":  {"x-match": "all", "x-first-death-reason": "rejected", "kind": "order"},
		} {
			check(s.t, ch.QueueBind(s.queue(ch, s.name+"."+name, nil), "", "amq.headers", false, binding))
		}
		s.queue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": "amq.headers"})
		headers := amqp091.Table{"kind": "order"}
		s.publish(ch, s.name, amqp091.Publishing{Headers: headers, Expiration: "20", Body: []byte("m")})
		s.get(ch, s.name+".expired")
		s.publish(ch, s.name, amqp091.Publishing{Headers: headers})
		check(s.t, s.get(ch, s.name).Reject(false))
		s.get(ch, s.name+".rejected")
		eventually(s.t, answerLimit, "both dead letters", func() bool { return s.messages(ch, s.name+".without") == 2 })
		return s.counts(ch, s.name+".expired", s.name+".rejected", s.name+".without")
	}, want: "0, 0, 2"},
	{name: "second death after a key of the queue", ask: func(s *session) string {
		ch := s.channel()
		second := s.name + ".second"
		check(s.t, ch.ExchangeDeclare(s.name, "direct", false, true, false, false, nil))
		for _, key := range []string{second, "cc", "bcc"} {
			check(s.t, ch.QueueBind(s.queue(ch, s.name+".by."+key, nil), key, s.name, false, nil))
		}
		s.queue(ch, second, amqp091.Table{"x-dead-letter-exchange": s.name})
		s.queue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": second})
		s.publish(ch, s.name, amqp091.Publishing{Headers: amqp091.Table{"CC": []any{"cc"}, "BCC": []any{"bcc"}}})
		check(s.t, s.get(ch, s.name).Reject(false))
		check(s.t, s.get(ch, second).Reject(false))
		d := s.get(ch, s.name+".by."+second)
		return fmt.Sprint(typed(deaths(d)[0]["routing-keys"]), " ", typed(deaths(d)[1]["routing-keys"]), ", ",
			s.counts(ch, s.name+".by.cc", s.name+".by.bcc"))
	}, want: "A[S:second-death-after-a-key-of-the-queue.second] A[S:second-death-after-a-key-of-the-queue S:cc], 0, 0"},
	{name: "dead-letter exchange missing", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": "deleted", "x-message-ttl": 50})
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("homeless")})
		eventually(s.t, answerLimit, "the queue to be empty", func() bool { return s.messages(ch, s.name) == 0 })
		var answer string
		for parked := time.Now().Add(2 * time.Second); answer != "nothing"; { // the message has left its queue a moment before it is parked
			answer = s.closing(func(ch *amqp091.Channel) error {
				_, err := ch.QueueDeclarePassive(undelivered, true, false, false, false, nil)
				return err
			})
			if answer != "nothing" && time.Now().After(parked) {
				return answer
			}
			<-time.After(20 * time.Millisecond)
		}
		d := s.get(ch, undelivered)
		check(s.t, d.Ack(false))
		return fmt.Sprintf("%s %s", d.Body, summary(d))
	}, want: "homeless dead-letter-exchange-missing:expired:1",
		rabbitmq: "channel 404 NOT_FOUND - no queue 'curfew.undeliverable' in vhost '/'",
		why:      "RabbitMQ drops what it cannot dead-letter; Curfew parks it"},
}

func (s *session) messages(ch *amqp091.Channel, queue string) int {
	s.t.Helper()
	q, err := ch.QueueDeclarePassive(queue, false, false, true, false, nil)
	check(s.t, err)
	return q.Messages
}

func deaths(d amqp091.Delivery) (out []amqp091.Table) {
	all, _ := d.Headers["x-death"].([]any)
	for _, death := range all {
		table, _ := death.(amqp091.Table)
		out = append(out, table)
	}
	return out
}

// summary is queue:reason:count of each death, newest first.
func summary(d amqp091.Delivery) string {
	var out []string
	for _, death := range deaths(d) {
		out = append(out, fmt.Sprintf("%v:%v:%v", death["queue"], death["reason"], death["count"]))
	}
	return strings.Join(out, " ")
}

// tapped keeps what a connection read.
type tapped struct {
	net.Conn
	mu   sync.Mutex
	seen []byte
}

func (c *tapped) dial(network, addr string) (net.Conn, error) {
	conn, err := net.Dial(network, addr)
	c.Conn = conn
	return c, err
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, p[:n]...)
	return n, err
}

// fields says with which type byte each field name was last seen: a field is its name's length, its name and its type.
func (c *tapped) fields(names ...string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, name := range names {
		kind := "absent"
		key := string(rune(len(name))) + name
		if at := strings.LastIndex(string(c.seen), key); at >= 0 && at+len(key) < len(c.seen) {
			kind = string(c.seen[at+len(key)])
		}
		out = append(out, name+":"+kind)
	}
	return strings.Join(out, " ")
}
