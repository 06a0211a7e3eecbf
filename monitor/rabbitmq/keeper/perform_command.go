package keeper

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"curfew/broker/deadline"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// perform carries out one command. A goroutine waits for the answer, if there is one.
func (s *session) perform(cmd command) {
	switch cmd.do {
	case look:
		s.spawn(func() { s.look(cmd.epoch) })
	case prove:
		s.prove()
	case learn:
		s.spawn(s.learn)
	case consume:
		s.startConsumer(cmd)
	case drop, shut:
		s.drop(s.channels[cmd.stretch], cmd.do == drop)
	default:
		if c := s.channels[cmd.stretch]; c != nil { // nil: RabbitMQ has closed it
			s.performOn(c, cmd)
		}
	}
}

// performOn carries out a command on the channel of a stretch. If the channel is closed, watch has posted or will post that.
func (s *session) performOn(c *channel, cmd command) {
	switch cmd.do {
	case giveBack:
		_ = c.open.Load().Nack(cmd.tag, false, true)
	case giveBackTo:
		_ = c.open.Load().Nack(cmd.tag, true, true)
	case giveBackAll:
		s.spawn(func() { s.giveBackAll(c, cmd.stretch) })
	case settle:
		s.spawn(func() {
			if c.roundTrip() == nil {
				s.post(event{kind: wasSettled, stretch: cmd.stretch})
			}
		})
	case cancel:
		tag := c.tags[len(c.tags)-1]
		s.spawn(func() { _ = c.cancel(tag) })
	case replace:
		_ = c.open.Load().Cancel(c.tags[cmd.consumption], true)
		s.stay(c, cmd.consumption)
	case stay:
		s.stay(c, cmd.consumption)
	case leave:
		_ = c.open.Load().Cancel(c.tags[cmd.consumption], true)
	case recall:
		tag, gone := c.tags[cmd.consumption], c.back[cmd.consumption]
		s.spawn(func() {
			if c.cancel(tag) == nil {
				<-gone
				s.post(event{kind: wasRecalled, stretch: cmd.stretch})
			}
		})
	}
}

func (s *session) startConsumer(cmd command) {
	c := s.channels[cmd.stretch]
	if c == nil {
		c = s.channelFor(cmd.stretch)
	}
	s.tags++
	tag, facts, args := consumerTag(s.k.o.Name, s.tags), s.facts, consumeArgs(s.facts, s.tags)
	c.tags = append(c.tags, tag)
	s.spawn(func() { s.consume(c, cmd.stretch, tag, cmd.prefetch, facts, args) })
}

// learn reads the facts of the queue.
func (s *session) learn() {
	ctx, cancel := context.WithTimeout(s.ctx, loadTimeout)
	defer cancel()
	facts, err := s.k.o.Facts(ctx)
	s.post(event{kind: wasLearned, facts: facts, err: err})
}

// look counts ready messages and consumers, on a channel of its own: RabbitMQ closes it if the queue does not exist.
func (s *session) look(epoch uint32) {
	e := event{kind: wasLooked, epoch: epoch}
	if e.err = s.openLooker(); e.err != nil {
		s.post(e)
		return
	}
	q, err := s.looker.QueueDeclarePassive(s.k.o.Queue, true, false, false, false, nil)
	e.ready, e.consumers, e.err = q.Messages, q.Consumers, err
	if closed, ok := errors.AsType[*amqp091.Error](err); ok {
		e.why = failureOf(closed)
	}
	s.post(e)
}

func (s *session) openLooker() (err error) {
	if s.looker == nil || s.looker.IsClosed() {
		if s.looker, err = s.conn.Channel(); err != nil {
			s.looker = nil
		}
	}
	return err
}

// prove posts when the queue has done everything it had been asked to do on this connection. A round trip on each channel shows that
// RabbitMQ's channel has sent the commands to the queue; then a consumer that comes and goes at once gets an answer only after the queue has
// done them. While a queue is slow, a channel sends only a part, and the rest when that is done: so prove does all this twice.
func (s *session) prove() {
	channels := append(slices.Collect(maps.Values(s.channels)), s.spare...)
	channels = slices.DeleteFunc(channels, func(c *channel) bool { return c.open.Load() == nil })
	closing := slices.Clone(s.closing)
	s.tags += 2
	tags := []string{consumerTag(s.k.o.Name, s.tags-1), consumerTag(s.k.o.Name, s.tags)}
	args := stayArgs(s.facts)
	s.spawn(func() {
		for _, done := range closing {
			<-done
		}
		var err error
		for _, tag := range tags {
			var trips sync.WaitGroup
			for _, c := range channels {
				trips.Go(func() { _ = c.roundTrip() }) // what is on a closed channel goes back by itself
			}
			trips.Wait()
			err = errors.Join(err, s.visit(tag, args))
		}
		s.post(event{kind: wasProven, err: err})
	})
}

// visit consumes and cancels at once. It gives back what it takes.
func (s *session) visit(tag string, args amqp091.Table) error {
	if err := s.openLooker(); err != nil {
		return err
	}
	if err := s.looker.Qos(1, 0, false); err != nil {
		return err
	}
	deliveries, err := s.looker.Consume(s.k.o.Queue, tag, false, false, false, false, args)
	if err != nil {
		return err
	}
	err = s.looker.Cancel(tag, false)
	for d := range deliveries {
		err = errors.Join(err, d.Nack(false, true))
	}
	return err
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
