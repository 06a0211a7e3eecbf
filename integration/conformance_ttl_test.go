package integration

import (
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// ttlVectors: what is accepted as a time to live, and when a message is gone by it (RabbitMQ: Time-To-Live and Expiration).
var ttlVectors = []vector{
	{name: "expiration abc", ask: func(s *session) string { return s.expiring("abc") },
		want: "channel 406 PRECONDITION_FAILED - invalid expiration 'abc': no_integer"},
	{name: "expiration -1", ask: func(s *session) string { return s.expiring("-1") },
		want: "channel 406 PRECONDITION_FAILED - invalid expiration '-1': {value_negative,-1}"},
	{name: "expiration over 10 years", ask: func(s *session) string { return s.expiring("315360000001") },
		want: "channel 406 PRECONDITION_FAILED - invalid expiration '315360000001': {value_too_large,315360000001}"},
	{name: "expiration 10 years", ask: func(s *session) string { return s.expiring("315360000000") }, want: "nothing"},
	{name: "expiration 5.0", ask: func(s *session) string { return s.expiring("5.0") },
		want: `channel 406 PRECONDITION_FAILED - invalid expiration '5.0': {leftover_string,".0"}`},
	{name: "expiration 1000s", ask: func(s *session) string { return s.expiring("1000s") },
		want: `channel 406 PRECONDITION_FAILED - invalid expiration '1000s': {leftover_string,"s"}`},
	{name: "expiration space 5", ask: func(s *session) string { return s.expiring(" 5") },
		want: "channel 406 PRECONDITION_FAILED - invalid expiration ' 5': no_integer"},
	{name: "expiration 007", ask: func(s *session) string { return s.expiring("007") }, want: "nothing"},
	{name: "expiration +5", ask: func(s *session) string { return s.expiring("+5") }, want: "nothing"},
	{name: "expiration to no exchange", ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			return ch.PublishWithContext(s.t.Context(), "nowhere", "k", false, false, amqp091.Publishing{Expiration: "abc"})
		})
	}, want: "channel 404 NOT_FOUND - no exchange 'nowhere' in vhost '/'"},

	{name: "ttl -1", ask: func(s *session) string { return s.declaring(amqp091.Table{"x-message-ttl": -1}) },
		want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'ttl--1' in vhost '/': {value_negative,-1}"},
	{name: "ttl over 10 years", ask: func(s *session) string { return s.declaring(amqp091.Table{"x-message-ttl": int64(315360000001)}) },
		want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'ttl-over-10-years' in vhost '/': {value_too_large,315360000001}"},
	{name: "ttl as text", ask: func(s *session) string { return s.declaring(amqp091.Table{"x-message-ttl": "60000"}) },
		want: `channel 406 PRECONDITION_FAILED - invalid arg 'x-message-ttl' for queue 'ttl-as-text' in vhost '/': "expected integer, got longstr"`},
	{name: "expires 0", ask: func(s *session) string { return s.declaring(amqp091.Table{"x-expires": 0}) },
		want: "channel 406 PRECONDITION_FAILED - invalid arg 'x-expires' for queue 'expires-0' in vhost '/': {value_zero,0}"},
	{name: "ttl another value", ask: func(s *session) string {
		s.queue(s.channel(), s.name, amqp091.Table{"x-message-ttl": 1000})
		return s.declaring(amqp091.Table{"x-message-ttl": 2000})
	}, want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'ttl-another-value' in vhost '/': received '2000' but current is '1000'"},
	{name: "ttl another width", ask: func(s *session) string {
		s.queue(s.channel(), s.name, amqp091.Table{"x-message-ttl": int32(1000)})
		return s.declaring(amqp091.Table{"x-message-ttl": int64(1000)})
	}, want: "nothing"},
	{name: "ttl left out", ask: func(s *session) string {
		s.queue(s.channel(), s.name, amqp091.Table{"x-message-ttl": int32(1000)})
		return s.declaring(nil)
	}, want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'x-message-ttl' for queue 'ttl-left-out' in vhost '/': received none but current is the value '1000' of type 'signedint'"},

	{name: "min of 10000 and 100", ask: func(s *session) string { return s.dies(amqp091.Table{"x-message-ttl": 10000}, "100") }, want: "message"},
	{name: "min of 100 and 10000", ask: func(s *session) string { return s.dies(amqp091.Table{"x-message-ttl": 100}, "10000") }, want: "message"},
	{name: "ttl 0 of the queue", ask: func(s *session) string { return s.dies(amqp091.Table{"x-message-ttl": 0}, "") }, want: "message"},
	{name: "ttl 0 of the message", ask: func(s *session) string { return s.dies(nil, "0") }, want: "message"},
	{name: "behind a longer one", ask: func(s *session) string {
		ch := s.channel()
		dead := s.deadLettered(ch, nil)
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("long"), Expiration: "60000"})
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("short"), Expiration: "100"})
		s.marker(ch, "3000")
		return s.body(dead)
	}, want: "short", rabbitmq: "marker", why: "RabbitMQ expires at the head only: the short one waits behind the long one"},

	{name: "expiration seen by the consumer", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		s.publish(ch, s.name, amqp091.Publishing{Expiration: "0060000"})
		return s.get(ch, s.name).Expiration
	}, want: "0060000"},
	{name: "confirm of ttl 0", ask: func(s *session) string {
		ch := s.channel()
		s.queue(ch, s.name, nil)
		check(s.t, ch.Confirm(false))
		returned := ch.NotifyReturn(make(chan amqp091.Return, 1))
		confirm, err := ch.PublishWithDeferredConfirm("", s.name, true, false, amqp091.Publishing{Expiration: "0"})
		check(s.t, err)
		if !confirm.Wait() {
			return "nack"
		}
		check(s.t, ch.Close())
		if r, isReturn := <-returned; isReturn {
			return "ack and return " + r.ReplyText
		}
		return "ack"
	}, want: "ack"},
	{name: "x-expires", ask: func(s *session) string {
		ch := s.channel()
		_, err := ch.QueueDeclare(s.name, false, false, false, false, amqp091.Table{"x-expires": 100})
		check(s.t, err)
		s.publish(ch, s.name, amqp091.Publishing{Body: []byte("does not protect it")})
		return s.gone(s.name, 300*time.Millisecond)
	}, want: "channel 404 NOT_FOUND - no queue 'x-expires' in vhost '/'"},
}

// dies publishes one message to a queue with the given arguments and says what reaches the dead-letter queue first: that, or a marker
// some seconds later.
func (s *session) dies(args amqp091.Table, expiration string) string {
	s.t.Helper()
	ch := s.channel()
	dead := s.deadLettered(ch, args)
	s.publish(ch, s.name, amqp091.Publishing{Body: []byte("message"), Expiration: expiration})
	s.marker(ch, "3000")
	return s.body(dead)
}

// gone looks for the queue once the time has passed (looking earlier would renew its lease) and says how the broker answers.
func (s *session) gone(queue string, after time.Duration) string {
	s.t.Helper()
	ch := s.channel()
	s.queue(ch, s.name+".dead", nil)
	s.queue(ch, s.name+".clock", amqp091.Table{
		"x-message-ttl": after.Milliseconds(), "x-dead-letter-exchange": "", "x-dead-letter-routing-key": s.name + ".dead"})
	s.publish(ch, s.name+".clock", amqp091.Publishing{})
	s.get(ch, s.name+".dead")
	return s.closing(func(ch *amqp091.Channel) error {
		_, err := ch.QueueDeclarePassive(queue, false, false, false, false, nil)
		return err
	})
}
