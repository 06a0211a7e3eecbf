package keeper

import (
	"strings"

	"curfew/broker/deadline"

	"go.uber.org/zap"
)

type eventKind uint8

const (
	wasOpened eventKind = iota
	wasDelivered
	wasStray
	wasEnded
	wasLost
	wasReturned
	wasSettled
	wasLooked
	wasLearned
)

// event is what a goroutine reports to run.
type event struct {
	kind             eventKind
	channel          *channel // of wasLost
	stretch          uint32   // of the other kinds that concern a stretch
	tag              uint64
	message          message
	epoch            uint32
	ready, consumers int
	why              failure
	err              error
	facts            Facts
}

// take hands one event to the core.
func (s *session) take(c *core, e event) {
	now := s.k.o.Now()
	text := ""
	if e.err != nil {
		text = e.err.Error()
	}
	switch e.kind {
	case wasOpened:
		c.opened(now, e.stretch)
	case wasDelivered:
		c.deliver(now, e.stretch, e.tag, e.message)
	case wasStray:
		c.stray(now, e.stretch)
	case wasEnded:
		c.ended(now, e.stretch)
	case wasLost:
		id := e.channel.stretch
		s.forget(e.channel)
		if e.why == timedOut {
			s.k.log.Warn("messages were held longer than RabbitMQ allows", zap.Error(e.err))
		}
		if id != 0 {
			c.lost(now, id, e.why, text)
		}
	case wasReturned:
		c.returned(now, e.stretch)
	case wasSettled:
		c.settled(now, e.stretch)
	case wasLooked:
		c.looked(now, e.epoch, e.ready, e.consumers, e.why, text, e.err == nil)
	case wasLearned:
		if e.err == nil {
			s.facts = e.facts
			c.setFacts(now, e.facts)
		} else {
			s.k.log.Warn("the facts of the queue cannot be read", zap.Error(e.err))
		}
	}
}

func (s *session) clusterEvent(e Event) func(*core, deadline.Instant) {
	switch {
	case e.Kind == FactsChanged:
		return func(c *core, now deadline.Instant) { c.line.out = append(c.line.out, command{do: learn}) }
	case e.Kind == QueueDeleted:
		return func(c *core, now deadline.Instant) {
			c.loseAll(now)
			c.advance(now)
		}
	case e.Kind == ConsumerCame && !strings.HasPrefix(e.ConsumerTag, tagPrefix):
		return func(c *core, now deadline.Instant) { c.consumerSeen(now) }
	}
	return nil
}
