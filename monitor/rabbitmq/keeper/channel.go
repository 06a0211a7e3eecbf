package keeper

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/queuefacts"
)

const (
	lowestPriority = math.MinInt32  // of consumers: each has one more than the one before it
	longestTimeout = 24 * time.Hour // what a consumer of a 4.3 quorum queue asks for
)

// channel is an AMQP channel with the stretch that it holds.
type channel struct {
	stretch uint32                          // 0 once it is dropped; of the goroutine run
	tag     string                          // of its consumer
	open    atomic.Pointer[amqp091.Channel] // nil before the consumer
}

func (s *session) drop(c *channel) {
	if c == nil {
		return
	}
	s.forget(c)
	if ch := c.open.Load(); ch != nil {
		s.spawn(func() { _ = ch.Close() })
	}
}

// forget takes a channel out of the map.
func (s *session) forget(c *channel) {
	delete(s.channels, c.stretch)
	c.stretch = 0
}

// consume opens the channel, consumes, and posts deliveries until the consumer has ended. watch posts when the channel is closed.
func (s *session) consume(c *channel, stretch uint32, prefetch int, args amqp091.Table) {
	ch, err := s.conn.Channel()
	if err != nil {
		why := other
		if errors.Is(err, amqp091.ErrChannelMax) {
			why = noChannel
		}
		s.post(s.lost(c, why, err))
		return
	}
	c.open.Store(ch)
	closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
	s.spawn(func() { s.watch(c, closed) })
	var deliveries <-chan amqp091.Delivery
	if err = ch.Qos(prefetch, 0, false); err == nil {
		deliveries, err = ch.Consume(s.k.o.Queue, c.tag, false, false, false, false, args)
	}
	if err != nil {
		return
	}
	s.post(func(c *core, now deadline.Instant) { c.opened(now, stretch) })
	r := newReader()
	for d := range deliveries {
		tag, m := d.DeliveryTag, r.read(&d)
		s.post(func(c *core, now deadline.Instant) { c.deliver(now, stretch, tag, m) })
	}
	s.post(func(c *core, now deadline.Instant) { c.ended(now, stretch) })
}

// consumeArgs returns the arguments of the consumer of a stretch.
func consumeArgs(f Facts, stretch uint32) amqp091.Table {
	args := amqp091.Table{"x-priority": int32(lowestPriority + int64(stretch))}
	if f.Family == queuefacts.Family43 && f.Type == queuefacts.Quorum {
		args["x-consumer-timeout"] = longestTimeout.Milliseconds()
	}
	return args
}

func (s *session) giveBackAll(c *channel, stretch uint32) {
	ch := c.open.Load()
	if ch.Nack(0, true, true) != nil {
		return
	}
	if _, err := ch.QueueDeclarePassive(s.k.o.Queue, true, false, false, false, nil); err == nil {
		s.post(func(c *core, now deadline.Instant) { c.returned(now, stretch) })
	}
}

// watch posts that RabbitMQ has closed the channel. The client answers close-ok before it reports that.
func (s *session) watch(c *channel, closed <-chan *amqp091.Error) {
	if err := <-closed; err != nil {
		s.post(s.lost(c, failureOf(err), err))
	}
}
