package keeper

import (
	"context"
	"errors"
	"strings"

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
		tag, args, quorum := consumerTag(s.k.o.Name, s.tags), s.consumeArgs(), s.facts.Type == Quorum
		c.tags = append(c.tags, tag)
		s.spawn(func() { s.consume(c, cmd.stretch, tag, cmd.prefetch, args, quorum) })
	case cancel:
		if c != nil {
			tag := c.tags[len(c.tags)-1]
			s.spawn(func() { _ = c.open.Load().Cancel(tag, false) })
		}
	case replace:
		if c != nil {
			_ = c.open.Load().Cancel(c.tags[cmd.consumption], true)
			s.stay(c, c.tags[cmd.consumption])
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
			s.stay(c, c.tags[cmd.consumption])
		}
	case leave:
		if c != nil {
			_ = c.open.Load().Cancel(c.tags[cmd.consumption], true)
		}
	case drop, shut:
		s.drop(c, cmd.do == drop)
	case look:
		s.spawn(func() { s.look(cmd.epoch) })
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
	if s.looker == nil || s.looker.IsClosed() {
		if s.looker, e.err = s.conn.Channel(); e.err != nil {
			s.looker = nil
			s.post(e)
			return
		}
	}
	q, err := s.looker.QueueDeclarePassive(s.k.o.Queue, true, false, false, false, nil)
	e.ready, e.consumers, e.err = q.Messages, q.Consumers, err
	if closed, ok := errors.AsType[*amqp091.Error](err); ok {
		e.why = failureOf(closed)
	}
	s.post(e)
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
