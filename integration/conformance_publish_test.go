package integration

import (
	"fmt"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const pseudoQueue = "amq.rabbitmq.reply-to"

// publishVectors: transactions, direct reply-to, and what publishing and routing promise beside.
var publishVectors = []vector{
	{name: "tx after confirm", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			check(s.t, ch.Confirm(false))
			return ch.Tx()
		})
	}, want: "channel 406 PRECONDITION_FAILED - cannot switch from confirm to tx mode"},
	{name: "confirm after tx", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			check(s.t, ch.Tx())
			return ch.Confirm(false)
		})
	}, want: "channel 406 PRECONDITION_FAILED - cannot switch from tx to confirm mode"},
	{name: "commit without tx", ask: func(s *session) string { return s.closing((*amqp091.Channel).TxCommit) },
		want: "channel 406 PRECONDITION_FAILED - channel is not transactional"},
	{name: "rollback without tx", ask: func(s *session) string { return s.closing((*amqp091.Channel).TxRollback) },
		want: "channel 406 PRECONDITION_FAILED - channel is not transactional"},
	{name: "tx publishes", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		check(s.t, ch.Tx())
		check(s.t, ch.Tx())
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("a")})
		before := s.messages(ch, s.name)
		check(s.t, ch.TxCommit())
		committed := s.messages(ch, s.name)
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("b")})
		check(s.t, ch.TxRollback())
		check(s.t, ch.TxCommit())
		return fmt.Sprintf("%d, %d, %d", before, committed, s.messages(ch, s.name))
	}, want: "0, 1, 1"},
	{name: "tx settles", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("a")})
		check(s.t, ch.Tx())
		d := s.get(ch, s.name)
		check(s.t, d.Ack(false))
		check(s.t, ch.TxRollback())
		_, again, err := ch.Get(s.name, false)
		check(s.t, err)
		check(s.t, d.Reject(true))
		check(s.t, ch.TxCommit())
		back := s.get(ch, s.name)
		return fmt.Sprintf("%v, then %s %v", again, back.Body, back.Redelivered)
	}, want: "false, then a true"},
	{name: "tx ends with its channel", ask: func(s *session) string {
		ch, other := s.channel(), s.channel()
		s.queue(other, s.name, nil)
		s.publish(other, s.name, amqp091.Publishing{Body: []byte("a")})
		check(s.t, ch.Tx())
		check(s.t, s.get(ch, s.name).Ack(false))
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("b")})
		check(s.t, ch.Close())
		d := s.get(other, s.name)
		return fmt.Sprintf("%s %v %d", d.Body, d.Redelivered, s.messages(other, s.name))
	}, want: "a true 0"},
	{name: "tx acks twice", ask: func(s *session) string {
		s.queue(s.channel(), s.name, nil)
		return s.closing(func(ch *amqp091.Channel) error {
			s.publish(ch, s.name, amqp091.Publishing{})
			check(s.t, ch.Tx())
			d := s.get(ch, s.name)
			check(s.t, d.Ack(false))
			return d.Ack(false)
		})
	}, want: "channel 406 PRECONDITION_FAILED - unknown delivery tag 1"},
	{name: "tx and a full queue", ask: func(s *session) string {
		s.queue(s.channel(), s.name, amqp091.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
		return s.closing(func(ch *amqp091.Channel) error {
			check(s.t, ch.Tx())
			s.publish(ch, s.name, amqp091.Publishing{})
			s.publish(ch, s.name, amqp091.Publishing{})
			return ch.TxCommit()
		})
	}, want: "channel 406 PRECONDITION_FAILED - partial tx completion"},
	{name: "tx and mandatory", ask: func(s *session) string {
		ch := s.channel()
		returned := ch.NotifyReturn(make(chan amqp091.Return, 1))
		check(s.t, ch.Tx())
		check(s.t, ch.PublishWithContext(s.t.Context(), "", "nobody", true, false, amqp091.Publishing{Body: []byte("back")}))
		check(s.t, ch.ExchangeDeclarePassive("amq.direct", "direct", true, false, false, false, nil))
		before := len(returned)
		check(s.t, ch.TxCommit())
		return fmt.Sprintf("%d, then %d with the commit", before, len(returned))
	}, want: "0, then 1 with the commit"},
	{name: "tx and a deleted queue", ask: func(s *session) string {
		return s.committing(func(ch *amqp091.Channel, q string) {
			s.sendMandatory(ch, "", "nobody", "1")
			s.sendMandatory(ch, "", q, "2")
			s.sendMandatory(ch, "", "nobody", "3")
			s.delete(ch, q)
		})
	}, want: "312 1, 312 2, 312 3; NOT_FOUND"},
	{name: "tx and a queue declared again", ask: func(s *session) string {
		return s.committing(func(ch *amqp091.Channel, q string) {
			s.sendMandatory(ch, "", q, "1")
			s.delete(ch, q)
			s.queue(ch, q, nil)
			s.sendMandatory(ch, "", q, "2")
		})
	}, want: "; 1 2"},
	{name: "tx and a queue declared late", ask: func(s *session) string {
		return s.committing(func(ch *amqp091.Channel, q string) {
			s.delete(ch, q)
			s.publish(ch, q, amqp091.Publishing{Body: []byte("1")})
			s.sendMandatory(ch, "", q, "2")
			s.queue(ch, q, nil)
		})
	}, want: "; 1 2"},
	{name: "tx and one of two queues deleted", ask: func(s *session) string {
		return s.committing(func(ch *amqp091.Channel, q string) {
			other := s.queue(ch, q+".other", nil)
			check(s.t, ch.QueueBind(q, "k", "amq.direct", false, nil))
			check(s.t, ch.QueueBind(other, "k", "amq.direct", false, nil))
			s.sendMandatory(ch, "amq.direct", "k", "1")
			s.delete(ch, other)
		})
	}, want: "; 1"},
	{name: "tx and other bindings", ask: func(s *session) string {
		return s.committing(func(ch *amqp091.Channel, q string) {
			check(s.t, ch.ExchangeDeclare(q, "direct", false, false, false, false, nil))
			s.sendMandatory(ch, q, "k", "1")
			check(s.t, ch.QueueBind(q, "k", q, false, nil))
			s.sendMandatory(ch, q, "k", "2")
			check(s.t, ch.ExchangeDelete(q, false, false))
		})
	}, want: "312 1; 2"},
	{name: "tx and an alternate exchange", ask: func(s *session) string {
		return s.committing(func(ch *amqp091.Channel, q string) {
			other := s.queue(ch, q+".other", nil)
			check(s.t, ch.ExchangeDeclare(q, "direct", false, false, false, false, amqp091.Table{"alternate-exchange": "amq.fanout"}))
			check(s.t, ch.QueueBind(other, "k", q, false, nil))
			check(s.t, ch.QueueBind(q, "", "amq.fanout", false, nil))
			s.sendMandatory(ch, q, "k", "1")
			s.delete(ch, other)
			check(s.t, ch.ExchangeDelete(q, false, false))
		})
	}, want: "312 1; "},
	{name: "tx and no exchange", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			check(s.t, ch.Tx())
			return ch.PublishWithContext(s.t.Context(), "nothing-here", "k", false, false, amqp091.Publishing{})
		})
	}, want: "channel 404 NOT_FOUND - no exchange 'nothing-here' in vhost '/'"},

	{name: "direct reply", ask: func(s *session) string {
		asks, answers := s.channel(), s.channel()
		replies, to := s.repliesTo(asks)
		q, err := answers.QueueDeclarePassive(to, false, false, false, false, nil)
		check(s.t, err)
		declared, err := answers.QueueDeclare(to, true, false, false, false, nil)
		check(s.t, err)
		s.publish(answers, to, amqp091.Publishing{Body: []byte("answer"), CorrelationId: "7"})
		d := s.next(replies)
		return fmt.Sprintf("%v %d %d %d, %s %s %v %v %q", strings.HasPrefix(to, pseudoQueue+"."), q.Messages, q.Consumers, declared.Consumers,
			d.Body, d.CorrelationId, d.Redelivered, d.RoutingKey == to, d.Exchange)
	}, want: `true 0 1 1, answer 7 false true ""`},
	{name: "direct reply by CC", ask: func(s *session) string {
		asks, answers := s.channel(), s.channel()
		replies, to := s.repliesTo(asks)
		s.publish(answers, "nobody", amqp091.Publishing{Body: []byte("answer"), Headers: amqp091.Table{"CC": []any{to}}})
		return string(s.next(replies).Body)
	}, want: "answer"},
	{name: "direct reply that is mandatory", ask: func(s *session) string {
		asks, answers := s.channel(), s.channel()
		replies, to := s.repliesTo(asks)
		returned := answers.NotifyReturn(make(chan amqp091.Return, 1))
		check(s.t, answers.PublishWithContext(s.t.Context(), "", to, true, false, amqp091.Publishing{Body: []byte("answer")}))
		return fmt.Sprintf("%s and %s", s.next(replies).Body, received(s.t, returned).ReplyText)
	}, want: "answer and NO_ROUTE"},
	{name: "direct reply in a tx", ask: func(s *session) string {
		asks, answers := s.channel(), s.channel()
		replies, to := s.repliesTo(asks)
		check(s.t, answers.Tx())
		s.publish(answers, to, amqp091.Publishing{Body: []byte("answer")})
		return string(s.next(replies).Body)
	}, want: "answer"},
	{name: "direct reply after the cancel", ask: func(s *session) string {
		asks := s.channel()
		replies, to := s.repliesTo(asks)
		s.publish(asks, to, amqp091.Publishing{})
		check(s.t, asks.Cancel(s.next(replies).ConsumerTag, false))
		return strings.ReplaceAll(s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclarePassive(to, false, false, false, false, nil)
			return err
		}), to, "TO")
	}, want: "channel 404 NOT_FOUND - no queue 'TO' in vhost '/'"},
	{name: "direct reply-to unasked", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.PublishWithContext(s.t.Context(), "", "k", false, false, amqp091.Publishing{ReplyTo: pseudoQueue})
		})
	}, want: "channel 406 PRECONDITION_FAILED - fast reply consumer does not exist"},
	{name: "direct reply-to with acks", ask: func(s *session) string { return s.consumingReplies(false, 1) },
		want: "channel 406 PRECONDITION_FAILED - reply consumer cannot acknowledge"},
	{name: "direct reply-to twice", ask: func(s *session) string { return s.consumingReplies(true, 2) },
		want: "channel 406 PRECONDITION_FAILED - reply consumer already set"},
	{name: "direct reply-to by get", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			_, _, err := ch.Get(pseudoQueue, true)
			return err
		})
	}, want: "channel 404 NOT_FOUND - no queue 'amq.rabbitmq.reply-to' in vhost '/'"},

	{name: "flow off", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error { return ch.Flow(false) })
	}, want: "connection 540 NOT_IMPLEMENTED - active=false"},
	{name: "flow on", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error { return ch.Flow(true) })
	}, want: "nothing"},
	{name: "CC as text", ask: func(s *session) string { return s.publishing("", amqp091.Table{"CC": "other"}) },
		want: `channel 406 PRECONDITION_FAILED - invalid message: {unacceptable_type_in_header,"CC",longstr}`},
	{name: "BCC of numbers", ask: func(s *session) string { return s.publishing("", amqp091.Table{"BCC": []any{int32(1)}}) },
		want: "nothing"},
	{name: "CC and BCC", ask: func(s *session) string {
		ch := s.channel()
		var got []string
		for _, name := range []string{s.name, s.name + ".cc", s.name + ".bcc"} {
			s.queue(ch, name, nil)
		}
		s.publish(ch, s.name, amqp091.Publishing{Headers: amqp091.Table{
			"CC": []any{s.name + ".cc", s.name}, "BCC": []any{s.name + ".bcc", s.name + ".cc"},
		}})
		for _, name := range []string{s.name, s.name + ".cc", s.name + ".bcc"} {
			d := s.get(ch, name)
			got = append(got, fmt.Sprintf("%d %s %s", s.messages(ch, name), d.RoutingKey, typed(d.Headers)))
		}
		return strings.Join(got, ", ")
	}, want: "0 CC-and-BCC F{CC=A[S:CC-and-BCC.cc S:CC-and-BCC]}, 0 CC-and-BCC F{CC=A[S:CC-and-BCC.cc S:CC-and-BCC]}, " +
		"0 CC-and-BCC F{CC=A[S:CC-and-BCC.cc S:CC-and-BCC]}"},
	{name: "internal exchange", ask: func(s *session) string {
		check(s.t, s.channel().ExchangeDeclare(s.name, "fanout", false, true, true, false, nil))
		return s.publishing(s.name, nil)
	}, want: "channel 403 ACCESS_REFUSED - cannot publish to internal exchange 'internal-exchange' in vhost '/'"},
	{name: "exchange to exchange", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		check(s.t, ch.ExchangeDeclare(s.name+".in", "topic", false, true, false, false, nil))
		check(s.t, ch.ExchangeDeclare(s.name+".out", "fanout", false, true, true, false, nil))
		check(s.t, ch.ExchangeBind(s.name+".out", "a.#", s.name+".in", false, nil))
		check(s.t, ch.QueueBind(s.name, "", s.name+".out", false, nil))
		check(s.t, ch.PublishWithContext(s.t.Context(), s.name+".in", "a.b", false, false, amqp091.Publishing{}))
		d := s.get(ch, s.name)
		return d.Exchange + " " + d.RoutingKey
	}, want: "exchange-to-exchange.in a.b"},
	{name: "alternate exchange", ask: func(s *session) string {
		ch := s.channel()
		returned := ch.NotifyReturn(make(chan amqp091.Return, 1))
		s.queue(ch, s.name, nil)
		check(s.t, ch.ExchangeDeclare(s.name+".alternate", "fanout", false, true, false, false, nil))
		check(s.t, ch.ExchangeDeclare(s.name, "direct", false, false, false, false, amqp091.Table{"alternate-exchange": s.name + ".alternate"}))
		check(s.t, ch.QueueBind(s.name, "", s.name+".alternate", false, nil))
		check(s.t, ch.PublishWithContext(s.t.Context(), s.name, "k", true, false, amqp091.Publishing{}))
		d := s.get(ch, s.name)
		check(s.t, ch.QueueUnbind(s.name, "", s.name+".alternate", nil)) // which deletes it
		check(s.t, ch.PublishWithContext(s.t.Context(), s.name, "k", true, false, amqp091.Publishing{}))
		return fmt.Sprintf("%s %s, then %s", d.Exchange, d.RoutingKey, received(s.t, returned).ReplyText)
	}, want: "alternate-exchange k, then NO_ROUTE"},
	{name: "alternate exchange as number", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.ExchangeDeclare(s.name, "direct", false, true, false, false, amqp091.Table{"alternate-exchange": int32(1)})
		})
	}, want: "channel 406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'alternate-exchange' in exchange 'alternate-exchange-as-number' in vhost '/'"},
	{name: "keys and an alternate exchange", ask: func(s *session) string {
		ch := s.channel()
		s.alternated(ch)
		s.publishKeys(ch, s.name, "bound", "nowhere")
		s.publishKeys(ch, s.name, "nowhere", "neither")
		return s.counts(ch, s.name, s.name+".alternate")
	}, want: "1, 1"},
	{name: "keys for two hops", ask: func(s *session) string {
		ch := s.channel()
		s.hops(ch)
		s.publishKeys(ch, s.name, "first", "second")
		s.publishKeys(ch, s.name, "first")
		s.publishKeys(ch, s.name, "second")
		return s.counts(ch, s.name)
	}, want: "1"},
	{name: "keys for an alternate exchange", ask: func(s *session) string {
		ch := s.channel()
		s.alternated(ch)
		check(s.t, ch.ExchangeDeclare(s.name+".topic", "topic", false, true, false, false, amqp091.Table{"alternate-exchange": s.name}))
		check(s.t, ch.QueueBind(s.name, "other", s.name+".topic", false, nil))
		s.publishKeys(ch, s.name+".topic", "nowhere", "bound")
		s.publishKeys(ch, s.name+".topic", "other", "nowhere")
		return s.counts(ch, s.name, s.name+".alternate")
	}, want: "2, 0"},
	{name: "wrong in more than one way", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.PublishWithContext(s.t.Context(), "nothing-here", "k", false, false, amqp091.Publishing{
				ReplyTo: pseudoQueue, UserId: "nobody", Expiration: "x", Headers: amqp091.Table{"CC": "k"},
			})
		})
	}, want: "channel 404 NOT_FOUND - no exchange 'nothing-here' in vhost '/'"},
	{name: "user and expiration wrong", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.PublishWithContext(s.t.Context(), "", "k", false, false, amqp091.Publishing{
				UserId: "nobody", Expiration: "x", Headers: amqp091.Table{"CC": "k"},
			})
		})
	}, want: "channel 406 PRECONDITION_FAILED - user_id property set to 'nobody' but authenticated user was 'guest'"},
	{name: "expiration and CC wrong", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.PublishWithContext(s.t.Context(), "", "k", false, false, amqp091.Publishing{
				Expiration: "x", Headers: amqp091.Table{"CC": "k"},
			})
		})
	}, want: "channel 406 PRECONDITION_FAILED - invalid expiration 'x': no_integer"},
	{name: "dead letter by its headers", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name+".dead", nil)
		check(s.t, ch.QueueBind(s.name+".dead", "", "amq.headers", false, amqp091.Table{"kind": "order", "x-match": "all"}))
		s.queue(ch, s.name, amqp091.Table{"x-dead-letter-exchange": "amq.headers"})
		s.publish(ch, s.name, amqp091.Publishing{Headers: amqp091.Table{"kind": "order"}, Body: []byte("m")})
		check(s.t, s.get(ch, s.name).Reject(false))
		return string(s.get(ch, s.name+".dead").Body)
	}, want: "m"},
}

// repliesTo starts a consumer of direct replies and returns the address that a request carries.
func (s *session) repliesTo(ch *amqp091.Channel) (replies <-chan amqp091.Delivery, to string) {
	s.t.Helper()
	replies, err := ch.Consume(pseudoQueue, "", true, false, false, false, nil)
	check(s.t, err)
	s.queue(ch, s.name, nil)
	s.publish(ch, s.name, amqp091.Publishing{ReplyTo: pseudoQueue})
	return replies, s.get(ch, s.name).ReplyTo
}

// alternated declares a direct exchange, a queue bound to it by the key bound, and an alternate exchange of it with a queue.
func (s *session) alternated(ch *amqp091.Channel) {
	s.t.Helper()
	check(s.t, ch.ExchangeDeclare(s.name+".alternate", "fanout", false, true, false, false, nil))
	check(s.t, ch.ExchangeDeclare(s.name, "direct", false, true, false, false, amqp091.Table{"alternate-exchange": s.name + ".alternate"}))
	check(s.t, ch.QueueBind(s.queue(ch, s.name, nil), "bound", s.name, false, nil))
	check(s.t, ch.QueueBind(s.queue(ch, s.name+".alternate", nil), "", s.name+".alternate", false, nil))
}

// hops declares a direct exchange, a second one bound to it by the key first, and a queue bound to that by the key second.
func (s *session) hops(ch *amqp091.Channel) {
	s.t.Helper()
	check(s.t, ch.ExchangeDeclare(s.name, "direct", false, true, false, false, nil))
	check(s.t, ch.ExchangeDeclare(s.name+".second", "direct", false, true, false, false, nil))
	check(s.t, ch.ExchangeBind(s.name+".second", "first", s.name, false, nil))
	check(s.t, ch.QueueBind(s.queue(ch, s.name, nil), "second", s.name+".second", false, nil))
}

// publishKeys publishes with the rest of the keys in BCC, and waits for the confirm: a queue of RabbitMQ answers how many messages it
// holds before it takes those that are on their way to it.
func (s *session) publishKeys(ch *amqp091.Channel, exchange, key string, more ...any) {
	s.t.Helper()
	check(s.t, ch.Confirm(false))
	confirmed, err := ch.PublishWithDeferredConfirm(exchange, key, false, false, amqp091.Publishing{Headers: amqp091.Table{"BCC": more}})
	check(s.t, err)
	confirmed.Wait()
}

// counts says how many messages there are in queues.
func (s *session) counts(ch *amqp091.Channel, queues ...string) string {
	s.t.Helper()
	var counts []string
	for _, q := range queues {
		counts = append(counts, fmt.Sprint(s.messages(ch, q)))
	}
	return strings.Join(counts, ", ")
}

func (s *session) consumingReplies(noAck bool, times int) string {
	s.t.Helper()
	return s.closing(func(ch *amqp091.Channel) (err error) {
		for range times {
			_, err = ch.Consume(pseudoQueue, "", noAck, false, false, false, nil)
		}
		return err
	})
}

func (s *session) publishing(exchange string, headers amqp091.Table) string {
	s.t.Helper()
	return s.closing(func(ch *amqp091.Channel) error {
		return ch.PublishWithContext(s.t.Context(), exchange, "k", false, false, amqp091.Publishing{Headers: headers})
	})
}

// committing runs f in a transaction, and says what its commit returns and what is then in the session's queue.
func (s *session) committing(f func(ch *amqp091.Channel, queue string)) string {
	s.t.Helper()
	ch := s.channel()
	returned := ch.NotifyReturn(make(chan amqp091.Return, 8))
	s.queue(ch, s.name, nil)
	check(s.t, ch.Tx())
	f(ch, s.name)
	check(s.t, ch.TxCommit())
	var back, in []string
	for len(returned) > 0 {
		r := <-returned
		back = append(back, fmt.Sprintf("%d %s", r.ReplyCode, r.Body))
	}
	for {
		d, some, err := ch.Get(s.name, true)
		if err != nil {
			in = append(in, "NOT_FOUND")
		}
		if !some {
			return strings.Join(back, ", ") + "; " + strings.Join(in, " ")
		}
		in = append(in, string(d.Body))
	}
}

func (s *session) sendMandatory(ch *amqp091.Channel, exchange, key, body string) {
	s.t.Helper()
	check(s.t, ch.PublishWithContext(s.t.Context(), exchange, key, true, false, amqp091.Publishing{Body: []byte(body)}))
}

func (s *session) delete(ch *amqp091.Channel, queue string) {
	s.t.Helper()
	_, err := ch.QueueDelete(queue, false, false, false)
	check(s.t, err)
}
