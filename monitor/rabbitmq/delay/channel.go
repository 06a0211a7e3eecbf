package delay

import (
	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// line is what the messages of a channel come over.
type line interface {
	settle(e *effect) error
	close(giveBack bool) // with giveBack, everything goes back at once
}

// line091 is one of AMQP 0-9-1.
type line091 struct {
	ch      *amqp091.Channel
	retries *retries
}

func (l line091) settle(e *effect) error {
	if e.ack {
		return l.ch.Ack(e.tag, false)
	}
	return l.ch.Nack(e.tag, false, l.retries.publishes(e) || e.again)
}

func (l line091) close(giveBack bool) {
	if giveBack {
		_ = l.ch.Nack(0, true, true)
	}
	_ = l.ch.Close()
}

// channel is an AMQP channel with the messages that it holds.
type channel struct {
	line  line
	tag   string // of its consumer over AMQP 0-9-1
	holds int    // at most

	// Guarded by k.mu.
	held  int
	since deadline.Instant // when it began to hold something
	gone  bool             // what it held has been dropped
}

func (c *channel) add(now deadline.Instant) {
	if c.held == 0 {
		c.since = now
	}
	c.held++
}

// open adds a channel that consumes.
func (s *session) open() error {
	if s.amqp10 {
		return s.openLink()
	}
	ch, err := s.conn.Channel()
	if err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	if err := ch.Qos(perChannel, 0, false); err != nil {
		return fmt.Errorf("set the prefetch: %w", err)
	}
	args := amqp091.Table{}
	if s.latest {
		args["x-consumer-timeout"] = consumerTimeout.Milliseconds()
	}
	c := s.add(line091{ch, s.retries}, perChannel)
	deliveries, err := ch.Consume(s.k.o.Queue, c.tag, false, false, false, false, args)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	s.wg.Go(func() {
		fingerprints := keeper.NewFingerprints()
		for d := range deliveries {
			s.receive(c, d.DeliveryTag, fingerprints, &d)
		}
		s.lost(c)
	})
	return nil
}

// openFor opens the further channels that so many ready messages need, several at once: a quorum queue of RabbitMQ writes each consumer to its log before
// it delivers to that. One after another, a hundred of them take seconds after a restart, and nothing is discarded meanwhile. It does nothing while it
// still opens some, nor over AMQP 1.0, where a link holds as many as twenty channels.
func (s *session) openFor(ready int) {
	s.k.mu.Lock()
	most := s.k.o.MaxMessages
	for _, c := range s.channels {
		ready, most = ready-(c.holds-c.held), most-c.holds
	}
	s.k.mu.Unlock()
	if min(ready, most) < perChannel || s.amqp10 || !s.opening.CompareAndSwap(false, true) {
		return
	}
	var left atomic.Int64
	left.Store(int64(min(ready, most) / perChannel))
	s.wg.Go(func() {
		defer s.opening.Store(false)
		var all sync.WaitGroup
		for range openedAtOnce {
			all.Go(func() {
				for left.Add(-1) >= 0 && s.ctx.Err() == nil {
					if err := s.open(); err != nil {
						s.fail(err)
						return
					}
				}
			})
		}
		all.Wait()
	})
}

// add adds a channel.
func (s *session) add(l line, holds int) *channel {
	c := &channel{line: l, holds: holds}
	s.k.mu.Lock()
	defer s.k.mu.Unlock()
	s.channels = append(s.channels, c)
	s.opened++
	c.tag = keeper.ConsumerTag(s.k.o.Name, s.opened)
	return c
}

// receive hands a delivery to the core: one that is published again when that has ended, so that no other one waits for it.
func (s *session) receive(c *channel, tag uint64, fingerprints *keeper.Fingerprints, d *amqp091.Delivery) {
	k := s.k
	var m message
	if s.retries != nil {
		m = s.retries.read(fingerprints, d)
	} else {
		m = read(fingerprints, k.o.Queue, d)
	}
	take := func() {
		k.mu.Lock()
		if !c.gone {
			k.core.deliver(k.nowLocked(), c, tag, &m)
		}
		k.mu.Unlock()
		deadline.Wake(k.wake)
	}
	if m.publish == nil {
		take()
		return
	}
	s.wg.Go(func() {
		m.publish(&m)
		take()
	})
}

// lost drops what a channel held: RabbitMQ has closed it, or cancelled its consumer, or drop has. With the connection, runSession drops everything at once.
func (s *session) lost(c *channel) {
	if s.ctx.Err() != nil || s.conn.IsClosed() {
		return
	}
	s.drop(false, c)
	s.k.mu.Lock()
	left := len(s.channels)
	s.k.mu.Unlock()
	if left == 0 {
		s.fail(errors.New("the queue no longer delivers: it was deleted, or its last channel was closed"))
	}
}

// drop closes channels, so that RabbitMQ delivers again what they held. With giveBack it takes that back at once, which from 4.3 on does not count against
// a delivery limit, as a lost connection does.
func (s *session) drop(giveBack bool, channels ...*channel) {
	k := s.k
	k.mu.Lock()
	channels = slices.DeleteFunc(channels, func(c *channel) bool { return c.gone })
	for _, c := range channels {
		c.gone = true
	}
	isGone := func(c *channel) bool { return c.gone }
	if len(channels) > 0 {
		k.core.lose(isGone)
	}
	s.channels = slices.DeleteFunc(s.channels, isGone)
	k.mu.Unlock()
	for _, c := range channels {
		c.line.close(giveBack)
	}
	deadline.Wake(k.wake)
}

// giveBack drops all channels.
func (s *session) giveBack() {
	s.k.mu.Lock()
	channels := slices.Clone(s.channels)
	s.k.mu.Unlock()
	s.drop(true, channels...)
}

// roll closes the channel that has held messages for too long, before RabbitMQ does.
func (s *session) roll() error {
	if s.facts.Family == cluster.Family43 { // what consumes from a quorum queue has a timeout of its own there, and a classic queue has none
		return nil
	}
	k, limit := s.k, s.facts.HoldLimit()
	var old []*channel
	k.mu.Lock()
	for _, c := range s.channels {
		if c.held > 0 && k.o.Now().Sub(c.since) > limit {
			old = append(old, c)
		}
	}
	all := len(old) == len(s.channels)
	k.mu.Unlock()
	if len(old) > 0 && all {
		if err := s.open(); err != nil {
			return err
		}
	}
	s.drop(false, old...)
	return nil
}
