package keeper

import (
	"strings"

	"curfew/broker/deadline"

	"go.uber.org/zap"
)

// input is what the core is told: an event of the cluster, an answer of RabbitMQ.
type input func(c *core, now deadline.Instant)

// lost is the input that RabbitMQ has closed the channel.
func (s *session) lost(ch *channel, why failure, err error) input {
	return func(c *core, now deadline.Instant) {
		id := ch.stretch
		s.forget(ch)
		if why == timedOut {
			s.k.log.Warn("messages were held longer than RabbitMQ allows", zap.Error(err))
		}
		if id != 0 {
			c.lost(now, id, why, err.Error())
		}
	}
}

// learned is the input that the facts of the queue were read.
func (s *session) learned(facts Facts, err error) input {
	return func(c *core, now deadline.Instant) {
		if err != nil {
			s.k.log.Warn("the facts of the queue cannot be read", zap.Error(err))
			return
		}
		s.facts = facts
		c.setFacts(now, facts)
	}
}

func (s *session) clusterEvent(e Event) input {
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
