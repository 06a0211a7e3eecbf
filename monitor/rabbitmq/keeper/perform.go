package keeper

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// perform carries out one command. What waits for an answer goes on in a goroutine.
func (s *session) perform(cmd command) {
	c := s.channels[cmd.stretch]
	switch cmd.do {
	case giveBack:
		if c != nil {
			_ = c.open.Load().Nack(cmd.tag, false, true) // a closed channel has posted that it is lost
		}
	case giveBackTo:
		if c != nil {
			_ = c.open.Load().Nack(cmd.tag, true, true)
		}
	case consume:
		if c == nil {
			c = s.channelFor(cmd.stretch)
		}
		s.tags++
		tag, facts, args := consumerTag(s.k.o.Name, s.tags), s.facts, consumeArgs(s.facts, s.tags)
		c.tags = append(c.tags, tag)
		s.spawn(func() { s.consume(c, cmd.stretch, tag, cmd.prefetch, facts, args) })
	case cancel:
		if c != nil {
			tag := c.tags[len(c.tags)-1]
			s.spawn(func() { _ = c.cancel(tag) })
		}
	case replace:
		if c != nil {
			_ = c.open.Load().Cancel(c.tags[cmd.consumption], true)
			s.stay(c, cmd.consumption)
		}
	case giveBackAll:
		if c != nil {
			s.spawn(func() { s.giveBackAll(c, cmd.stretch) })
		}
	case settle:
		if c != nil {
			s.spawn(func() {
				if c.roundTrip() == nil {
					s.post(event{kind: wasSettled, stretch: cmd.stretch})
				}
			})
		}
	case stay:
		if c != nil {
			s.stay(c, cmd.consumption)
		}
	case leave:
		if c != nil {
			_ = c.open.Load().Cancel(c.tags[cmd.consumption], true)
		}
	case recall:
		if c != nil {
			tag, gone := c.tags[cmd.consumption], c.back[cmd.consumption]
			s.spawn(func() {
				if c.cancel(tag) == nil {
					<-gone
					s.post(event{kind: wasRecalled, stretch: cmd.stretch})
				}
			})
		}
	case drop, shut:
		s.drop(c, cmd.do == drop)
	case look:
		s.spawn(func() { s.look(cmd.epoch) })
	case prove:
		s.prove()
	case learn:
		s.spawn(func() {
			ctx, cancel := context.WithTimeout(s.ctx, loadTimeout)
			defer cancel()
			facts, err := s.k.o.Facts(ctx)
			s.post(event{kind: wasLearned, facts: facts, err: err})
		})
	}
}

// look counts ready messages and consumers, on a channel of its own, which a queue that is not there closes.
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

// prove posts that the queue has done all that it had been asked for on this connection. A round trip on each channel tells that RabbitMQ's
// channel has sent it to the queue, and the answer to a consumer that comes after that, and goes at once, that the queue has done it.
// While a queue is slow a channel sends a part only, and the rest when that is done: so it takes the same once more.
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

// visit consumes and cancels at once. What it takes goes back.
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

// failureOf tells by code and text why RabbitMQ closed a channel.
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
