package integration

import (
	"fmt"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	sinceThen  = "3.10 does not look at this argument, later versions do"
	ownArg     = "Curfew's own argument"
	noStreams  = "Curfew has no streams"
	refusedFor = "channel 406 PRECONDITION_FAILED - invalid arg '%s' for queue '%s' in vhost '/'%s"
)

var quorum = amqp091.Table{"x-queue-type": "quorum"}

// asked is one queue.declare with a wrong argument. reason is what follows the argument and queue in the error's text; "": it succeeds.
type asked struct {
	name     string
	args     amqp091.Table
	arg      string
	reason   string
	rabbitmq string // reason of RabbitMQ, or "none", where it differs
	why      string
}

// argumentVectors: what queue.declare takes for each type of queue.
func argumentVectors() (vectors []vector) {
	const foreignClassic, foreignQuorum = " of queue type rabbit_classic_queue", " of queue type rabbit_quorum_queue"
	for _, a := range []asked{
		{"type unknown", amqp091.Table{"x-queue-type": "heap"}, "x-queue-type", `: "unsupported queue type 'heap'"`, "", ""},
		{"type no text", amqp091.Table{"x-queue-type": int32(3)}, "x-queue-type", ": {unacceptable_type,signedint}", "", ""},
		{"type stream", amqp091.Table{"x-queue-type": "stream"}, "x-queue-type", `: "unsupported queue type 'stream'"`, "none", noStreams},
		{"type classic", amqp091.Table{"x-queue-type": "classic"}, "", "", "", ""},
		{"single active as text", amqp091.Table{"x-single-active-consumer": "true"}, "x-single-active-consumer", ": {unacceptable_type,longstr}", "", ""},
		{"single active as number", amqp091.Table{"x-single-active-consumer": int32(1)}, "x-single-active-consumer", ": {unacceptable_type,signedint}", "", ""},
		{"limit on classic", amqp091.Table{"x-delivery-limit": int32(3)}, "x-delivery-limit", foreignClassic, "", ""},
		{"limit -1", with(quorum, amqp091.Table{"x-delivery-limit": int32(-1)}), "", "", "", ""},
		{"limit as text", with(quorum, amqp091.Table{"x-delivery-limit": "3"}), "x-delivery-limit", `: "expected integer, got longstr"`, "none", sinceThen},
		{"strategy on classic", amqp091.Table{"x-dead-letter-strategy": "at-least-once"}, "x-dead-letter-strategy", foreignClassic, "", ""},
		{"strategy unknown", with(quorum, amqp091.Table{"x-dead-letter-strategy": "never"}), "x-dead-letter-strategy", ": invalid_dlx_strategy", "", ""},
		{"strategy no text", with(quorum, amqp091.Table{"x-dead-letter-strategy": int32(1)}), "x-dead-letter-strategy", ": {unacceptable_type,signedint}", "", ""},
		{"priorities on quorum", with(quorum, amqp091.Table{"x-max-priority": "high"}), "x-max-priority", foreignQuorum, "", ""},
		{"priorities 256", amqp091.Table{"x-max-priority": int32(256)}, "x-max-priority", ": {max_value_exceeded,256}", "", ""},
		{"mode on quorum", with(quorum, amqp091.Table{"x-queue-mode": "lazy"}), "x-queue-mode", foreignQuorum, "", ""},
		{"mode lazy", amqp091.Table{"x-queue-mode": "lazy"}, "", "", "", ""},
		{"mode unknown", amqp091.Table{"x-queue-mode": "busy"}, "x-queue-mode", `: "unsupported queue mode 'busy'"`, "", ""},
		{"mode no text", amqp091.Table{"x-queue-mode": int32(1)}, "x-queue-mode", ": {unacceptable_type,signedint}", "", ""},
		{"version 2", amqp091.Table{"x-queue-version": int32(2)}, "", "", "", ""},
		{"version 3", amqp091.Table{"x-queue-version": int32(3)}, "x-queue-version", `: "unsupported queue version '3'"`, "", ""},
		{"version as text", amqp091.Table{"x-queue-version": "2"}, "x-queue-version", `: "expected integer, got longstr"`, "", ""},
		{"group size 0", with(quorum, amqp091.Table{"x-quorum-initial-group-size": int32(0)}), "x-quorum-initial-group-size", ": {value_zero,0}", "", ""},
		{"group size 1", with(quorum, amqp091.Table{"x-quorum-initial-group-size": int32(1)}), "", "", "", ""},
		{"group size on classic", amqp091.Table{"x-quorum-initial-group-size": int32(1)}, "x-quorum-initial-group-size", foreignClassic, "", ""},
		{"leader locator", with(quorum, amqp091.Table{"x-queue-leader-locator": "balanced"}), "", "", "", ""},
		{"leader locator unknown", with(quorum, amqp091.Table{"x-queue-leader-locator": "moon"}), "x-queue-leader-locator", ": invalid_queue_locator_arg", "", ""},
		{"leader locator on classic", amqp091.Table{"x-queue-leader-locator": "balanced"}, "x-queue-leader-locator", foreignClassic, "", ""},
		{"in memory -1", with(quorum, amqp091.Table{"x-max-in-memory-length": int32(-1)}), "x-max-in-memory-length", ": {value_negative,-1}", "", ""},
		{"stream's age", amqp091.Table{"x-max-age": "1D"}, "x-max-age", foreignClassic, "", ""},
		{"stream's segments", with(quorum, amqp091.Table{"x-stream-max-segment-size-bytes": int32(1)}), "x-stream-max-segment-size-bytes", foreignQuorum, "", ""},
		{"argument unknown", amqp091.Table{"x-anything": int32(1)}, "", "", "", ""},
		{"two mistakes", amqp091.Table{"x-max-length": int32(-1), "x-expires": int32(0)}, "x-expires", ": {value_zero,0}", "", ""},
		{"consumer timeout 0", amqp091.Table{"x-consumer-timeout": int32(0)}, "x-consumer-timeout", ": {value_zero,0}", "none", sinceThen},
		{"delivery count 0", amqp091.Table{"x-max-delivery-count": int32(0)}, "x-max-delivery-count", ": {value_zero,0}", "none", ownArg},
		{"Service Bus's name", amqp091.Table{"x-requires-session": true}, "x-requires-session", `: "sessions are not supported"`, "none", ownArg},
		{"of a plugin", amqp091.Table{"x-message-deduplication": true, "x-cache-size": int32(9)}, "", "", "", ""},
		{"lock 0", amqp091.Table{"x-lock-duration": int32(0)}, "x-lock-duration", ": {value_zero,0}", "none", ownArg},
	} {
		vectors = append(vectors, a.vector())
	}
	return vectors
}

func (a *asked) vector() vector {
	v := vector{name: a.name, why: a.why, ask: func(s *session) string {
		return s.closing(func(ch *amqp091.Channel) error {
			_, err := ch.QueueDeclare(s.name, true, false, false, false, a.args)
			if err == nil {
				_, err = ch.QueueDelete(s.name, false, false, false)
			}
			return err
		})
	}, want: "nothing"}
	queue := dashed(a.name)
	if a.reason != "" {
		v.want = fmt.Sprintf(refusedFor, a.arg, queue, a.reason)
	}
	if a.rabbitmq == "none" {
		v.rabbitmq = "nothing"
	} else if a.rabbitmq != "" {
		v.rabbitmq = fmt.Sprintf(refusedFor, a.arg, queue, a.rabbitmq)
	}
	return v
}

// typeVectors: what a quorum queue cannot be, and what a redeclare has to repeat.
var typeVectors = []vector{
	{name: "quorum not durable", ask: func(s *session) string { return s.declaringAs(false, false, false, quorum) },
		want: "channel 406 PRECONDITION_FAILED - invalid property 'non-durable' for queue 'quorum-not-durable' in vhost '/'"},
	{name: "quorum exclusive", ask: func(s *session) string { return s.declaringAs(true, false, true, quorum) },
		want: "channel 406 PRECONDITION_FAILED - invalid property 'exclusive-owner' for queue 'quorum-exclusive' in vhost '/'"},
	{name: "quorum auto-delete", ask: func(s *session) string { return s.declaringAs(false, true, true, quorum) },
		want: "channel 406 PRECONDITION_FAILED - invalid property 'auto-delete' for queue 'quorum-auto-delete' in vhost '/'"},
	{name: "quorum without name", ask: func(s *session) string {
		s.name = ""
		return s.declaringAs(true, false, false, quorum)
	}, want: "channel 406 PRECONDITION_FAILED - Cannot declare a server-named queue for type rabbit_quorum_queue"},
	{name: "classic is not a type", ask: func(s *session) string {
		return s.redeclaring(nil, amqp091.Table{"x-queue-type": "classic"}) + ", " + s.redeclaring(amqp091.Table{"x-queue-type": "classic"}, nil)
	}, want: "nothing, nothing"},
	{name: "quorum after classic", ask: func(s *session) string { return s.redeclaring(nil, quorum) },
		want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'quorum-after-classic' in vhost '/': " +
			"received the value 'quorum' of type 'longstr' but current is none"},
	{name: "classic after quorum", ask: func(s *session) string { return s.redeclaring(quorum, nil) },
		want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'classic-after-quorum' in vhost '/': " +
			"received none but current is the value 'quorum' of type 'longstr'"},
	{name: "single active differs", ask: func(s *session) string {
		return s.redeclaring(amqp091.Table{"x-single-active-consumer": true}, amqp091.Table{"x-single-active-consumer": false})
	}, want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'x-single-active-consumer' for queue 'single-active-differs' in vhost '/': " +
		"received 'false' but current is 'true'"},
	{name: "limit differs", ask: func(s *session) string {
		return s.redeclaring(with(quorum, amqp091.Table{"x-delivery-limit": int32(3)}), with(quorum, amqp091.Table{"x-delivery-limit": int32(4)}))
	}, want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'x-delivery-limit' for queue 'limit-differs' in vhost '/': received '4' but current is '3'"},
	{name: "another type's argument again", ask: func(s *session) string {
		return s.redeclaring(quorum, with(quorum, amqp091.Table{"x-max-priority": int32(2)}))
	}, want: "nothing"},
	{name: "mode differs", ask: func(s *session) string { return s.redeclaring(amqp091.Table{"x-queue-mode": "lazy"}, nil) },
		want: "channel 406 PRECONDITION_FAILED - inequivalent arg 'x-queue-mode' for queue 'mode-differs' in vhost '/': " +
			"received none but current is the value 'lazy' of type 'longstr'"},
	{name: "unknown argument differs", ask: func(s *session) string {
		return s.redeclaring(amqp091.Table{"x-anything": int32(1)}, amqp091.Table{"x-anything": int32(2)})
	}, want: "nothing"},
	{name: "exclusive differs", ask: func(s *session) string {
		s.queue(s.channel(), s.name, nil)
		return s.declaringAs(false, false, false, nil)
	}, want: "channel 405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'exclusive-differs' in vhost '/'. " +
		"It could be originally declared on another connection or the exclusive property value does not match that of the original declaration."},
}

func (s *session) declaringAs(durable, autoDelete, exclusive bool, args amqp091.Table) string {
	s.t.Helper()
	return s.closing(func(ch *amqp091.Channel) error {
		_, err := ch.QueueDeclare(s.name, durable, autoDelete, exclusive, false, args)
		return err
	})
}

// redeclaring declares the session's queue with before, then with after, and deletes it.
func (s *session) redeclaring(before, after amqp091.Table) string {
	s.t.Helper()
	ch := s.channel()
	_, err := ch.QueueDeclare(s.name, true, false, false, false, before)
	check(s.t, err)
	defer func() {
		_, err := ch.QueueDelete(s.name, false, false, false)
		check(s.t, err)
	}()
	return s.declaringAs(true, false, false, after)
}
