package keeper

import (
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

const (
	priority       = -10
	stayPriority   = math.MinInt32  // of consumers that are back to take nothing
	longestTimeout = 24 * time.Hour // what a consumer of a 4.3 quorum queue asks for
)

// channel is an AMQP channel with the stretch that it holds.
type channel struct {
	stretch uint32                          // 0: none any more; of the goroutine run
	tags    []string                        // of the stretch's consumers, by consumption; of the goroutine run
	open    atomic.Pointer[amqp091.Channel] // nil before the first consumer
	dropped atomic.Bool                     // it is closed as soon as it is open
	calls   sync.Mutex                      // held while waiting for an answer: the client would mix answers up
	qos     int                             // under calls
}

// call asks RabbitMQ for something and waits for the answer.
func (c *channel) call(ask func(ch *amqp091.Channel) error) error {
	c.calls.Lock()
	defer c.calls.Unlock()
	return ask(c.open.Load())
}

// drop closes the channel.
func (s *session) drop(c *channel) {
	s.forget(c)
	c.dropped.Store(true)
	if ch := c.open.Load(); ch != nil {
		s.spawn(func() { _ = ch.Close() })
	}
}

// forget takes a channel out of those that hold something.
func (s *session) forget(c *channel) {
	delete(s.channels, c.stretch)
	c.stretch = 0
}

// consume opens the channel if necessary, consumes, and posts deliveries until the consumer has ended. watch posts when
// the channel is closed.
func (s *session) consume(c *channel, stretch uint32, tag string, prefetch int, facts Facts, args amqp091.Table) {
	ch := c.open.Load()
	if ch == nil {
		var err error
		if ch, err = s.conn.Channel(); err != nil {
			why := other
			if errors.Is(err, amqp091.ErrChannelMax) {
				why = noChannel
			}
			s.post(s.lost(c, why, err))
			return
		}
		if c.open.Store(ch); c.dropped.Load() { // the queue was deleted meanwhile, and another one of its name would have a consumer that nobody reads
			_ = ch.Close()
			return
		}
		closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
		s.spawn(func() { s.watch(c, closed) })
	}
	var deliveries <-chan amqp091.Delivery
	err := c.call(func(ch *amqp091.Channel) (err error) {
		if err = c.setQos(prefetch); err != nil {
			return err
		}
		deliveries, err = ch.Consume(s.k.o.Queue, tag, false, false, false, false, args)
		return err
	})
	if err != nil {
		return
	}
	s.post(func(c *core, now deadline.Instant) { c.opened(now, stretch) })
	fingerprints := NewFingerprints()
	for d := range deliveries {
		tag, m := d.DeliveryTag, read(fingerprints, &d)
		s.post(func(c *core, now deadline.Instant) { c.deliver(now, stretch, tag, m) })
	}
	if facts.Type == cluster.Quorum { // what was on its way to the consumer goes back to the queue before the next consumer starts
		_ = c.roundTrip() // watch posts a closed channel
	}
	s.post(func(c *core, now deadline.Instant) { c.ended(now, stretch) })
}

// consumeArgs returns the arguments of a consumer.
func consumeArgs(f Facts) amqp091.Table {
	args := amqp091.Table{"x-priority": int32(priority)}
	if f.Family == cluster.Family43 && f.Type == cluster.Quorum {
		args["x-consumer-timeout"] = longestTimeout.Milliseconds()
	}
	return args
}

// stay puts a cancelled consumer back to take nothing: RabbitMQ counts its messages as held by a live consumer, and takes them back at once
// when the node of the connection goes down. The AMQP 1.0 plugin of RabbitMQ 3.x consumes with x-credit: giving messages back adds no credit then.
func (s *session) stay(c *channel, consumption int) {
	args := amqp091.Table{"x-priority": int32(stayPriority), "x-credit": amqp091.Table{"credit": int64(0), "drain": false}}
	deliveries, err := c.open.Load().Consume(s.k.o.Queue, c.tags[consumption], false, false, false, true, args)
	if err != nil {
		return // watch posts a closed channel
	}
	stretch := c.stretch
	s.spawn(func() {
		for range deliveries {
			s.post(func(c *core, now deadline.Instant) { c.stray(now, stretch) })
		}
	})
}

// setQos sets the prefetch of further consumers. The caller holds calls.
func (c *channel) setQos(prefetch int) error {
	if c.qos == prefetch {
		return nil
	}
	c.qos = prefetch
	return c.open.Load().Qos(prefetch, 0, false)
}

// roundTrip waits until RabbitMQ's channel has done everything it was asked to do before.
func (c *channel) roundTrip() error {
	return c.call(func(ch *amqp091.Channel) error { return ch.Qos(c.qos, 0, false) })
}

func (s *session) giveBackAll(c *channel, stretch uint32) {
	if c.open.Load().Nack(0, true, true) != nil {
		return
	}
	err := c.call(func(ch *amqp091.Channel) error {
		_, err := ch.QueueDeclarePassive(s.k.o.Queue, true, false, false, false, nil)
		return err
	})
	if err == nil {
		s.post(func(c *core, now deadline.Instant) { c.returned(now, stretch) })
	}
}

// watch posts that RabbitMQ has closed the channel. The client answers close-ok before it reports that.
func (s *session) watch(c *channel, closed <-chan *amqp091.Error) {
	if err := <-closed; err != nil {
		s.post(s.lost(c, failureOf(err), err))
	}
}
