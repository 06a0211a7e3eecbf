package keeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

// action is what the core asks its driver to do. The input that is named after the colon answers it.
type action uint8

const (
	consume     action = iota // consume with prefetch, on the stretch's channel or a new one: opened, later ended
	cancel                    // cancel the stretch's consumer: ended, after its last delivery
	giveBack                  // nack(tag, requeue)
	giveBackTo                // nack(tag, multiple, requeue)
	giveBackAll               // nack(multiple, requeue) of the channel and a round trip: returned
	settle                    // a round trip on the channel, after messages were given back one by one: settled
	replace                   // cancel the stretch's consumer, and stay: ended
	stay                      // consume again under the tag of a cancelled consumer, to take nothing: no answer, or a stray
	leave                     // cancel such a consumer: no answer
	drop                      // close the stretch's channel: no answer
	look                      // ask for ready messages and consumers: looked
	learn                     // read the facts of the queue: setFacts
)

type command struct {
	do          action
	stretch     uint32
	tag         uint64
	prefetch    int
	consumption int // of the stretch
	epoch       uint32
}

// failure is why a channel was closed by RabbitMQ, or a look went wrong.
type failure uint8

const (
	other       failure = iota
	queueGone           // 404: there is no such queue
	unavailable         // 404: it has no leader, or its node is down
	forbidden           // 403: no permission
	locked              // another consumer has it exclusively
	noChannel           // the connection has no more of them
	timedOut            // consumer_timeout
)

// perform carries out one command. A goroutine waits for the answer, if there is one.
func (s *session) perform(cmd command) {
	switch cmd.do {
	case look:
		s.spawn(func() { s.look(cmd.epoch) })
	case learn:
		s.spawn(s.learn)
	case consume:
		s.startConsumer(cmd)
	default:
		if c := s.channels[cmd.stretch]; c != nil { // nil: RabbitMQ has closed it
			s.performOn(c, cmd)
		}
	}
}

// performOn carries out a command on the channel of a stretch. If the channel is closed, watch has posted or will post that.
func (s *session) performOn(c *channel, cmd command) {
	switch cmd.do {
	case drop:
		s.drop(c)
	case giveBack:
		_ = c.open.Load().Nack(cmd.tag, false, true)
	case giveBackTo:
		_ = c.open.Load().Nack(cmd.tag, true, true)
	case giveBackAll:
		s.spawn(func() { s.giveBackAll(c, cmd.stretch) })
	case settle:
		s.spawn(func() {
			if c.roundTrip() == nil {
				s.post(func(c *core, now deadline.Instant) { c.settled(now, cmd.stretch) })
			}
		})
	case cancel:
		tag := c.tags[len(c.tags)-1]
		s.spawn(func() { _ = c.call(func(ch *amqp091.Channel) error { return ch.Cancel(tag, false) }) })
	case replace:
		_ = c.open.Load().Cancel(c.tags[cmd.consumption], true)
		s.stay(c, cmd.consumption)
	case stay:
		s.stay(c, cmd.consumption)
	case leave:
		_ = c.open.Load().Cancel(c.tags[cmd.consumption], true)
	}
}

func (s *session) startConsumer(cmd command) {
	c := s.channels[cmd.stretch]
	if c == nil {
		c = &channel{stretch: cmd.stretch}
		s.channels[cmd.stretch] = c
	}
	s.tags++
	tag, facts, args := ConsumerTag(s.k.o.Name, s.tags), s.facts, consumeArgs(s.facts)
	c.tags = append(c.tags, tag)
	s.spawn(func() { s.consume(c, cmd.stretch, tag, cmd.prefetch, facts, args) })
}

// learn reads the facts of the queue.
func (s *session) learn() {
	ctx, cancel := context.WithTimeout(s.ctx, loadTimeout)
	defer cancel()
	facts, err := s.k.o.Facts(ctx)
	s.post(s.learned(facts, err))
}

// look counts ready messages and consumers, on a channel of its own: RabbitMQ closes it if the queue does not exist.
func (s *session) look(epoch uint32) {
	var q amqp091.Queue
	var err error
	if s.looker == nil || s.looker.IsClosed() {
		s.looker, err = s.conn.Channel()
	}
	if err == nil {
		q, err = s.looker.QueueDeclarePassive(s.k.o.Queue, true, false, false, false, nil)
	}
	why := other
	if closed, ok := errors.AsType[*amqp091.Error](err); ok {
		why = failureOf(closed)
	}
	s.post(func(c *core, now deadline.Instant) {
		c.looked(now, epoch, q.Messages, q.Consumers, why, cluster.Words(err), err == nil)
	})
}

// failureOf finds out by code and text why RabbitMQ closed a channel.
func failureOf(err *amqp091.Error) failure {
	switch err.Code {
	case amqp091.NotFound:
		if strings.Contains(err.Reason, "no queue") {
			return queueGone
		}
		return unavailable
	case amqp091.AccessRefused:
		if strings.Contains(err.Reason, "exclusive use") {
			return locked
		}
		return forbidden
	case amqp091.ResourceLocked:
		return locked
	case amqp091.PreconditionFailed:
		if strings.Contains(err.Reason, "timeout") || strings.Contains(err.Reason, "timed out") {
			return timedOut
		}
	}
	return other
}

// timeoutIn returns the consumer_timeout that RabbitMQ names when it closes a channel for that; 0: it names none.
func timeoutIn(text string) time.Duration {
	var ms deadline.Millis
	if _, value, ok := strings.Cut(text, "Timeout value used: "); ok {
		_, _ = fmt.Sscan(value, &ms)
	}
	return max(0, ms.Duration())
}
