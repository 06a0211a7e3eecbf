package keeper

import (
	"errors"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

const (
	priority       = -10
	longestTimeout = 24 * time.Hour // what a consumer of a 4.3 quorum queue asks for
	spareChannels  = 2
)

// channel is an AMQP channel and the stretch that it holds at the moment.
type channel struct {
	stretch uint32                          // 0 while it is spare; of the goroutine run
	tags    []string                        // of the stretch's consumers, by consumption; of the goroutine run
	open    atomic.Pointer[amqp091.Channel] // nil before the first consumer
	qos     int                             // of the goroutine that waits for RabbitMQ
}

func (s *session) channelFor(stretch uint32) *channel {
	c := &channel{}
	if n := len(s.spare); n > 0 {
		c, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	c.stretch, c.tags = stretch, nil
	s.channels[stretch] = c
	return c
}

func (s *session) drop(c *channel, mayReuse bool) {
	if c == nil {
		return
	}
	delete(s.channels, c.stretch)
	c.stretch = 0
	ch := c.open.Load()
	if ch == nil {
		return
	}
	if mayReuse && len(s.spare) < spareChannels && !ch.IsClosed() {
		s.spare = append(s.spare, c)
		return
	}
	s.spawn(func() { _ = ch.Close() })
}

// forget takes a closed channel out of the maps.
func (s *session) forget(c *channel) {
	if s.channels[c.stretch] == c {
		delete(s.channels, c.stretch)
	}
	c.stretch = 0
	for i, spare := range s.spare {
		if spare == c {
			s.spare = append(s.spare[:i], s.spare[i+1:]...)
			break
		}
	}
}

// consume opens the channel if need be, consumes, and posts what comes until the consumer has ended. A closed channel
// is posted by watch.
func (s *session) consume(c *channel, stretch uint32, tag string, prefetch int, args amqp091.Table, quorum bool) {
	ch := c.open.Load()
	if ch == nil {
		var err error
		if ch, err = s.conn.Channel(); err != nil {
			why := other
			if errors.Is(err, amqp091.ErrChannelMax) {
				why = noChannel
			}
			s.post(event{kind: wasLost, channel: c, why: why, err: err})
			return
		}
		c.open.Store(ch)
		closed := ch.NotifyClose(make(chan *amqp091.Error, 1))
		s.spawn(func() { s.watch(c, closed) })
	}
	if c.qos != prefetch {
		if ch.Qos(prefetch, 0, false) != nil {
			return
		}
		c.qos = prefetch
	}
	deliveries, err := ch.Consume(s.k.o.Queue, tag, false, false, false, false, args)
	if err != nil {
		return
	}
	s.post(event{kind: wasOpened, stretch: stretch})
	r := newReader()
	for d := range deliveries {
		s.post(event{kind: wasDelivered, stretch: stretch, tag: d.DeliveryTag, message: r.read(&d)})
	}
	if quorum { // what was on its way to the consumer goes back to the queue before the next consumer asks
		_ = c.roundTrip() // a closed channel is posted by watch
	}
	s.post(event{kind: wasEnded, stretch: stretch})
}

func (s *session) consumeArgs() amqp091.Table {
	args := amqp091.Table{"x-priority": int32(priority)}
	if s.facts.Family == V43 && s.facts.Type == Quorum {
		args["x-consumer-timeout"] = longestTimeout.Milliseconds()
	}
	return args
}

// stay puts a cancelled consumer back that can take nothing: RabbitMQ counts what it holds as that of a live one, and takes it back at once
// when the node of the connection goes down. x-credit is what RabbitMQ's AMQP 1.0 plugin consumes with, and keeps giving back from being
// credit.
func (s *session) stay(c *channel, tag string) {
	args := amqp091.Table{"x-priority": int32(priority), "x-credit": amqp091.Table{"credit": int64(0), "drain": false}}
	deliveries, err := c.open.Load().Consume(s.k.o.Queue, tag, false, false, false, true, args)
	if err != nil {
		return // a closed channel is posted by watch
	}
	stretch := c.stretch
	s.spawn(func() {
		for range deliveries {
			s.post(event{kind: wasStray, stretch: stretch})
		}
	})
}

// roundTrip waits until RabbitMQ's channel has done what it was asked for before.
func (c *channel) roundTrip() error { return c.open.Load().Qos(c.qos, 0, false) }

func (s *session) giveBackAll(c *channel, stretch uint32) {
	ch := c.open.Load()
	if ch.Nack(0, true, true) != nil {
		return
	}
	if _, err := ch.QueueDeclarePassive(s.k.o.Queue, true, false, false, false, nil); err == nil {
		s.post(event{kind: wasReturned, stretch: stretch})
	}
}

// watch posts that RabbitMQ has closed the channel. Its client answers close-ok before it tells.
func (s *session) watch(c *channel, closed <-chan *amqp091.Error) {
	if err := <-closed; err != nil {
		s.post(event{kind: wasLost, channel: c, why: failureOf(err), err: err})
	}
}
