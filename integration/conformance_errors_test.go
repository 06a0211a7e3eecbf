package integration

import (
	"fmt"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// errorVectors: which level a mistake closes, with which code and text.
var errorVectors = []vector{
	{name: "immediate", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.PublishWithContext(s.t.Context(), "", "k", false, true, amqp091.Publishing{})
		})
	}, want: "connection 540 NOT_IMPLEMENTED - immediate=true"},
	{name: "dead-letter key alone", ask: func(s *session) string {
		return s.declaring(amqp091.Table{"x-dead-letter-routing-key": "k"})
	}, want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-dead-letter-routing-key' for queue 'dead-letter-key-alone' in vhost '/': routing_key_but_no_dlx_defined"},
	{name: "dead-letter exchange as number", ask: func(s *session) string {
		return s.declaring(amqp091.Table{"x-dead-letter-exchange": int32(1)})
	}, want: "channel 406 PRECONDITION_FAILED - invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'dead-letter-exchange-as-number' in vhost '/'"},
	{name: "max length -1", ask: func(s *session) string { return s.declaring(amqp091.Table{"x-max-length": -1}) },
		want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-max-length' for queue 'max-length--1' in vhost '/': {value_negative,-1}"},
	{name: "overflow unknown", ask: func(s *session) string { return s.declaring(amqp091.Table{"x-overflow": "spill"}) },
		want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-overflow' for queue 'overflow-unknown' in vhost '/': invalid_overflow"},
	{name: "durable differs", ask: func(s *session) string {
		_, err := s.channel().QueueDeclare(s.name, true, true, false, false, nil)
		check(s.t, err)
		return s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclare(s.name, false, true, false, false, nil)
			return err
		})
	}, want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'durable-differs' in vhost '/': received 'false' but current is 'true'"},
	{name: "no queue", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.Consume("nothing-here", "", true, false, false, false, nil)
			return err
		})
	}, want: "channel 404 NOT_FOUND - no queue 'nothing-here' in vhost '/'"},
	{name: "no exchange", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.ExchangeDeclarePassive("nothing-here", "direct", true, false, false, false, nil)
		})
	}, want: "channel 404 NOT_FOUND - no exchange 'nothing-here' in vhost '/'"},
	{name: "exchange kind unknown", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.ExchangeDeclare(s.name, "spiral", false, true, false, false, nil)
		})
	}, want: "channel 406 PRECONDITION_FAILED - unknown exchange type 'spiral'",
		rabbitmq: "connection 503 COMMAND_INVALID - unknown exchange type 'spiral'", why: "RabbitMQ 4 closes the channel, 3.10 the connection"},
	{name: "exchange kind differs", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.ExchangeDeclare("amq.topic", "direct", true, false, false, false, nil)
		})
	}, want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'type' for exchange 'amq.topic' in vhost '/': received 'direct' but current is 'topic'"},
	{name: "reserved queue name", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclare("amq.mine", false, true, false, false, nil)
			return err
		})
	}, want: "channel 403 ACCESS_REFUSED - queue name 'amq.mine' contains reserved prefix 'amq.*'"},
	{name: "bind to the default exchange", ask: func(s *session) string {
		s.queue(s.channel(), s.name, nil)
		return s.closing(func(ch *amqp091.Channel) error { return ch.QueueBind(s.name, "k", "", false, nil) })
	}, want: "channel 403 ACCESS_REFUSED - operation not permitted on the default exchange"},
	{name: "delete a used queue", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		_, err := ch.Consume(s.name, "", true, false, false, false, nil)
		check(s.t, err)
		return s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.QueueDelete(s.name, true, false, false)
			return err
		})
	}, want: "channel 406 PRECONDITION_FAILED - queue 'delete-a-used-queue' in vhost '/' in use"},
	{name: "delete a filled queue", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		s.publish(ch, s.name, amqp091.Publishing{})
		eventually(s.t, answerLimit, "the message", func() bool { return s.messages(ch, s.name) == 1 })
		return s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.QueueDelete(s.name, false, true, false)
			return err
		})
	}, want: "channel 406 PRECONDITION_FAILED - queue 'delete-a-filled-queue' in vhost '/' not empty"},
	{name: "exclusive queue of another", ask: func(s *session) string {
		_, err := openChannel(s.t, dial(s.t, s.url)).QueueDeclare(s.name, false, false, true, false, nil)
		check(s.t, err)
		return s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclarePassive(s.name, false, false, true, false, nil)
			return err
		})
	}, want: "channel 405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'exclusive-queue-of-another' in vhost '/'. " +
		"It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."},
	{name: "ack twice", ask: func(s *session) string {
		setup := s.channel()
		s.queue(setup, s.name, nil)
		s.publish(setup, s.name, amqp091.Publishing{})
		return s.closing(func(ch *amqp091.Channel) error {
			d := s.get(ch, s.name)
			check(s.t, d.Ack(false))
			return d.Ack(false)
		})
	}, want: "channel 406 PRECONDITION_FAILED - unknown delivery tag 1"},
	{name: "consumer tag twice", ask: func(s *session) string {
		s.queue(s.channel(), s.name, nil)
		return s.closing(func(ch *amqp091.Channel) error {
			for range 2 {
				if _, err := ch.Consume(s.name, "tag", true, false, false, false, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}, want: "connection 530 NOT_ALLOWED - attempt to reuse consumer tag 'tag'"},
	{name: "prefetch size", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error { return ch.Qos(1, 1, false) })
	}, want: "connection 540 NOT_IMPLEMENTED - prefetch_size!=0 (1)"},
	{name: "mandatory without route", ask: func(s *session) string {
		ch := s.channel()
		returned := ch.NotifyReturn(make(chan amqp091.Return, 1))
		check(s.t, ch.PublishWithContext(s.t.Context(), "amq.direct", "nobody", true, false, amqp091.Publishing{Body: []byte("back")}))
		r := received(s.t, returned)
		return fmt.Sprintf("%d %s %s %s %s", r.ReplyCode, r.ReplyText, r.Exchange, r.RoutingKey, r.Body)
	}, want: "312 NO_ROUTE amq.direct nobody back"},
}
