package integration

import (
	"fmt"
	"strings"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

var single = amqp091.Table{"x-single-active-consumer": true}

// consumerVectors: which consumers are served, in which order, and which are refused (RabbitMQ: Consumer Priorities, Single Active Consumer).
var consumerVectors = []vector{
	{name: "priority as text", ask: func(s *session) string { return s.consuming(nil, false, amqp091.Table{"x-priority": "high"}) },
		want: `channel 406 PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'priority-as-text' in vhost '/': "expected integer, got longstr"`},
	{name: "priority as bool", ask: func(s *session) string { return s.consuming(quorum, false, amqp091.Table{"x-priority": true}) },
		want: `channel 406 PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'priority-as-bool' in vhost '/': "expected integer, got bool"`},
	{name: "priority -5", ask: func(s *session) string { return s.consuming(nil, false, amqp091.Table{"x-priority": int8(-5)}) }, want: "nothing"},
	{name: "stream offset", ask: func(s *session) string { return s.consuming(nil, false, amqp091.Table{"x-stream-offset": "first"}) },
		want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'stream-offset' in vhost '/' of queue type rabbit_classic_queue"},
	{name: "failover no bool", ask: func(s *session) string {
		return s.consuming(nil, false, amqp091.Table{"x-cancel-on-ha-failover": int32(1)})
	}, want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-cancel-on-ha-failover' for queue 'failover-no-bool' in vhost '/': {unacceptable_type,signedint}"},
	{name: "failover of quorum", ask: func(s *session) string {
		return s.consuming(quorum, false, amqp091.Table{"x-cancel-on-ha-failover": true})
	}, want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-cancel-on-ha-failover' for queue 'failover-of-quorum' in vhost '/' of queue type rabbit_quorum_queue"},
	{name: "exclusive on single active", ask: func(s *session) string { return s.consuming(single, true, nil) },
		want: "channel 403 ACCESS_REFUSED - queue 'exclusive-on-single-active' in vhost '/' in exclusive use"},
	{name: "exclusive beside another", ask: func(s *session) string { return s.consuming(nil, true, nil, false) },
		want: "channel 403 ACCESS_REFUSED - queue 'exclusive-beside-another' in vhost '/' in exclusive use"},
	{name: "beside an exclusive", ask: func(s *session) string { return s.consuming(nil, false, nil, true) },
		want: "channel 403 ACCESS_REFUSED - queue 'beside-an-exclusive' in vhost '/' in exclusive use"},
	{name: "exclusive of quorum", ask: func(s *session) string { return s.consuming(quorum, true, nil, true) }, want: "nothing"},
	{name: "get beside an exclusive", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		check(s.t, ch.Qos(1, 0, false))
		_, err := ch.Consume(s.name, "", false, true, false, false, nil)
		check(s.t, err)
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("its")})
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("got")})
		return string(s.get(ch, s.name).Body)
	}, want: "got"},
	{name: "get from a single active quorum", ask: func(s *session) string {
		s.durable(with(quorum, single))
		return s.closing(func(ch *amqp091.Channel) error {
			_, _, err := ch.Get(s.name, true)
			return err
		})
	}, want: "channel 405 RESOURCE_LOCKED - cannot obtain access to locked queue 'get-from-a-single-active-quorum' in vhost '/'. " +
		"basic.get operations are not supported by quorum queues with single active consumer"},
	{name: "global prefetch on quorum", ask: func(s *session) string {
		s.durable(quorum)
		return s.closing(func(ch *amqp091.Channel) error {
			check(s.t, ch.Qos(3, 0, true))
			_, err := ch.Consume(s.name, "", false, false, false, false, nil)
			return err
		})
	}, want: "connection 540 NOT_IMPLEMENTED - queue 'global-prefetch-on-quorum' in vhost '/' does not support global qos"},
	{name: "priorities", ask: func(s *session) string {
		s.queue(s.channel(), s.name, nil)
		low, high := s.consumer("low", 10, nil), s.consumer("high", 2, amqp091.Table{"x-priority": int64(3)})
		other := s.consumer("other", 2, amqp091.Table{"x-priority": int64(3)})
		s.publishNumbers(6)
		return s.bodies(high, 2) + "; " + s.bodies(other, 2) + "; " + s.bodies(low, 2)
	}, want: "0 2; 1 3; 4 5"},
	{name: "single active", ask: func(s *session) string {
		s.queue(s.channel(), s.name, single)
		first, second := s.consumer("first", 2, nil), s.consumer("second", 9, nil)
		third := s.consumer("third", 9, amqp091.Table{"x-priority": int64(3)})
		s.publishNumbers(4)
		got := s.bodies(first, 2)
		check(s.t, first.ch.Close())
		got += "; " + s.bodies(third, 4)
		check(s.t, third.ch.Close())
		return got + "; " + s.bodies(second, 4)
	}, want: "0 1; 0 1 2 3; 0 1 2 3"},
	{name: "single active quorum", ask: func(s *session) string {
		s.durable(with(quorum, single))
		first := s.consumer("first", 2, amqp091.Table{"x-priority": int64(3)})
		second, third := s.consumer("second", 9, nil), s.consumer("third", 9, amqp091.Table{"x-priority": int64(3)})
		s.publishNumbers(2)
		got := s.bodies(first, 2)
		check(s.t, first.ch.Close())
		next := "third"
		select {
		case d := <-third.deliveries:
			got += fmt.Sprintf("; %s %s", d.Body, s.bodies(third, 1))
		case d := <-second.deliveries:
			next = "second"
			got += fmt.Sprintf("; %s %s", d.Body, s.bodies(second, 1))
		}
		return got + " " + next
	}, want: "0 1; 0 1 third", rabbitmq: "0 1; 0 1 second", why: "priorities count among single active consumers of quorum queues since 4.0"},
	{name: "delivery count", ask: func(s *session) string {
		s.durable(quorum)
		ch := s.channel()
		s.publish(ch, s.name, amqp091.Publishing{Headers: amqp091.Table{"x-delivery-count": int64(7), "a": "b"}})
		var seen []string
		for range 2 {
			d := s.get(ch, s.name)
			seen = append(seen, fmt.Sprint(typed(d.Headers), " ", d.Redelivered))
			check(s.t, d.Nack(false, true))
		}
		ch.Close()
		return strings.Join(seen, "; ")
	}, want: "F{a=S:b x-delivery-count=l:0} false; F{a=S:b x-delivery-count=l:1} true"},
	{name: "delivery limit", ask: func(s *session) string {
		ch := s.channel()
		dead := s.queue(ch, s.name+".dead", nil)
		s.durable(with(quorum, amqp091.Table{"x-delivery-limit": int32(1), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}))
		s.publish(ch, s.name, amqp091.Publishing{})
		for range 2 {
			check(s.t, s.get(ch, s.name).Nack(false, true))
		}
		d := s.get(ch, dead)
		_, counted := d.Headers["x-delivery-count"]
		return fmt.Sprint(summary(d), " ", counted)
	}, want: "delivery-limit:delivery_limit:1 false"},
	{name: "cancelled with the queue", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		return s.cancelled(ch, func() {
			_, err := ch.QueueDelete(s.name, false, false, false)
			check(s.t, err)
		})
	}, want: "cancelled tag"},
	{name: "cancelled by another", ask: func(s *session) string {
		ch := s.channel()
		_, err := ch.QueueDeclare(s.name, false, true, false, false, nil)
		check(s.t, err)
		return s.cancelled(ch, func() {
			_, err := openChannel(s.t, dial(s.t, s.url)).QueueDelete(s.name, false, false, false)
			check(s.t, err)
		})
	}, want: "cancelled tag"},
}

// cancelled consumes from the session's queue, runs f and says which consumer the broker cancelled.
func (s *session) cancelled(ch *amqp091.Channel, f func()) string {
	s.t.Helper()
	_, err := ch.Consume(s.name, "tag", true, false, false, false, nil)
	check(s.t, err)
	gone := ch.NotifyCancel(make(chan string, 1))
	f()
	return "cancelled " + <-gone
}

// durable declares the session's queue durable and deletes it when the test ends.
func (s *session) durable(args amqp091.Table) {
	s.t.Helper()
	ch := s.channel()
	_, err := ch.QueueDeclare(s.name, true, false, false, false, args)
	check(s.t, err)
	s.t.Cleanup(func() {
		_, err := openChannel(s.t, dial(s.t, s.url)).QueueDelete(s.name, false, false, false)
		check(s.t, err)
	})
}

// consuming declares the session's queue with args, starts a consumer for each of before, exclusive or not, and then one more.
func (s *session) consuming(args amqp091.Table, exclusive bool, consumeArgs amqp091.Table, before ...bool) string {
	s.t.Helper()
	s.durable(args)
	for _, exclusive := range before {
		_, err := s.channel().Consume(s.name, "", false, exclusive, false, false, nil)
		check(s.t, err)
	}
	return s.closing(func(ch *amqp091.Channel) error {
		_, err := ch.Consume(s.name, "", false, exclusive, false, false, consumeArgs)
		return err
	})
}

// consumer is a consumer with a channel and prefetch of its own.
type consumer struct {
	ch         *amqp091.Channel
	deliveries <-chan amqp091.Delivery
}

func (s *session) consumer(tag string, prefetch int, args amqp091.Table) consumer {
	s.t.Helper()
	ch := s.channel()
	check(s.t, ch.Qos(prefetch, 0, false))
	deliveries, err := ch.Consume(s.name, tag, false, false, false, false, args)
	check(s.t, err)
	return consumer{ch, deliveries}
}

// publishNumbers sends 0 to n-1 and waits for the confirms.
func (s *session) publishNumbers(n int) {
	s.t.Helper()
	ch := s.channel()
	check(s.t, ch.Confirm(false))
	for i := range n {
		confirm, err := ch.PublishWithDeferredConfirmWithContext(s.t.Context(), "", s.name, false, false, amqp091.Publishing{Body: fmt.Append(nil, i)})
		check(s.t, err)
		confirm.Wait()
	}
}

// bodies are the next n deliveries of a consumer.
func (s *session) bodies(c consumer, n int) string {
	s.t.Helper()
	var all []string
	for range n {
		all = append(all, string(s.next(c.deliveries).Body))
	}
	return strings.Join(all, " ")
}
