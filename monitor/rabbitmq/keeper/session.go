package keeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker/deadline"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"
)

const (
	priority       = -10
	longestTimeout = 24 * time.Hour // what a consumer of a 4.3 quorum queue asks for
	spareChannels  = 2
	eventsAtOnce   = 256
	closeTimeout   = 2 * time.Second
)

// session is one connection. One goroutine, run, owns the core and the maps; what waits for RabbitMQ is done by
// goroutines of its own, which post what came of it.
type session struct {
	k        *Keeper
	conn     *amqp091.Connection
	events   chan event
	ctx      context.Context // ends with the session: nobody reads events any more
	wg       sync.WaitGroup
	channels map[uint32]*channel
	spare    []*channel
	tags     int
	looker   *amqp091.Channel // used by one look at a time
	facts    Facts
	scratch  []command
	expired  []Expiry
	fresh    []Shadow
}

// channel is an AMQP channel and the stretch that it holds at the moment.
type channel struct {
	stretch uint32                          // 0 while it is spare; of the goroutine run
	tags    []string                        // of the stretch's consumers, by consumption; of the goroutine run
	open    atomic.Pointer[amqp091.Channel] // nil before the first consumer
	qos     int                             // of the goroutine that waits for RabbitMQ
}

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

// event is what a goroutine has to say to run.
type event struct {
	kind             eventKind
	channel          *channel // of wasLost
	stretch          uint32   // of the others that concern one
	tag              uint64
	message          message
	epoch            uint32
	ready, consumers int
	why              failure
	err              error
	facts            Facts
}

// runSession connects and keeps the queue until the connection is lost, which is the error; nil says that all has been
// given back, because ctx has ended or the lease is another's.
func (k *Keeper) runSession(ctx context.Context) error {
	conn, err := k.o.Connect(ctx)
	if err != nil {
		return fmt.Errorf("keeper: connect: %w", err)
	}
	inner, cancel := context.WithCancel(context.Background())
	s := &session{k: k, conn: conn, ctx: inner, events: make(chan event, 4096), channels: map[uint32]*channel{}}
	defer func() {
		cancel()
		_ = conn.CloseDeadline(time.Now().Add(closeTimeout))
		s.wg.Wait()
	}()
	closed := conn.NotifyClose(make(chan *amqp091.Error, 1))
	if s.facts, err = k.o.Facts(ctx); err != nil {
		return fmt.Errorf("keeper: facts: %w", err)
	}
	return s.run(ctx, closed)
}

// post hands an event to run; it is dropped when the session has ended.
func (s *session) post(e event) {
	select {
	case s.events <- e:
	case <-s.ctx.Done():
	}
}

func (s *session) spawn(fn func()) {
	s.wg.Add(1)
	go func() {
		defer s.wg.Done()
		fn()
	}()
}

func (s *session) run(ctx context.Context, closed <-chan *amqp091.Error) error {
	k := s.k
	timer := time.NewTimer(0)
	defer timer.Stop()
	leases := make(chan leaseState, 1)
	s.startLease(leases)
	var lost <-chan struct{}
	if k.o.Shadows != nil {
		lost = k.o.Shadows.Lost()
	}
	done := ctx.Done()
	var stopBy <-chan time.Time
	in := func(c *core, now deadline.Instant) { c.connect(now, s.facts) }
	for {
		if s.step(in, timer) {
			return nil
		}
		in = nil
		select {
		case e := <-s.events:
			in = func(c *core, now deadline.Instant) { s.take(c, e) }
		case <-timer.C:
		case e := <-k.o.Events:
			in = s.clusterEvent(e)
		case <-k.allowed:
			in = func(c *core, now deadline.Instant) { c.allow(now) }
		case <-lost:
			in = func(c *core, now deadline.Instant) { s.fresh = append(s.fresh, c.shadows()...) }
		case state := <-leases:
			if state == leaseOthers {
				in = func(c *core, now deadline.Instant) {
					c.beginRelease(now, Observing, leased)
					c.advance(now)
				}
			}
		case <-done:
			done, stopBy = nil, time.After(k.stopTimeout())
			in = func(c *core, now deadline.Instant) { c.stop(now) }
		case <-stopBy:
			return errors.New("keeper: not all was given back in time")
		case err := <-closed:
			if err == nil {
				return errors.New("keeper: connection closed")
			}
			return fmt.Errorf("keeper: connection closed: %w", err)
		}
	}
}

// startLease renews the lease each second; what comes of it is sent to leases.
func (s *session) startLease(leases chan<- leaseState) {
	if s.k.o.Lease == nil {
		return
	}
	s.spawn(func() {
		tick := time.NewTicker(leaseEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-s.ctx.Done():
				return
			}
			state := s.k.renew(s.ctx)
			select {
			case leases <- state:
			case <-s.ctx.Done():
				return
			}
		}
	})
}

// step hands the input and further events to the core, carries out its commands and sets the timer. It reports whether
// the session is over.
func (s *session) step(in func(*core, deadline.Instant), timer *time.Timer) (over bool) {
	k := s.k
	k.mu.Lock()
	c := k.core
	now := k.o.Now()
	if in != nil {
		in(c, now)
	}
	for range eventsAtOnce {
		select {
		case e := <-s.events:
			s.take(c, e)
			continue
		default:
		}
		break
	}
	if now = k.o.Now(); now >= c.wake() {
		c.tick(now)
	}
	s.scratch, c.line.out = c.line.out, s.scratch[:0]
	s.expired, c.given.expired = append(s.expired[:0], c.given.expired...), c.given.expired[:0]
	s.fresh, c.fresh = append(s.fresh, c.fresh...), c.fresh[:0]
	wake := c.wake()
	over = c.state == Stopped || c.state == Observing && c.reason == leased
	k.tellLocked()
	k.mu.Unlock()
	for _, cmd := range s.scratch {
		s.perform(cmd)
	}
	s.report()
	if timer != nil {
		timer.Reset(max(0, min(wake, now.Add(time.Minute)).Sub(k.o.Now())))
	}
	return over
}

func (s *session) report() {
	if len(s.expired) > 0 && s.k.o.Expired != nil {
		for i := range s.expired {
			s.expired[i].VHost, s.expired[i].Queue = s.k.o.VHost, s.k.o.Queue
		}
		s.k.o.Expired(s.expired)
	}
	if len(s.fresh) > 0 {
		if s.k.o.Shadows != nil {
			s.k.o.Shadows.Put(s.fresh)
		}
		s.fresh = s.fresh[:0]
	}
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
	case e.Kind == ConsumerCame && !strings.HasPrefix(e.ConsumerTag, tagPrefix):
		return func(c *core, now deadline.Instant) { c.consumerSeen(now) }
	}
	return nil
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

func (s *session) consumeArgs() amqp091.Table {
	args := amqp091.Table{"x-priority": int32(priority)}
	if s.facts.Family == V43 && s.facts.Type == Quorum {
		args["x-consumer-timeout"] = longestTimeout.Milliseconds()
	}
	return args
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

// watch posts that RabbitMQ has closed the channel. Its client answers close-ok before it tells.
func (s *session) watch(c *channel, closed <-chan *amqp091.Error) {
	if err := <-closed; err != nil {
		s.post(event{kind: wasLost, channel: c, why: failureOf(err), err: err})
	}
}

func (s *session) giveBackAll(c *channel, stretch uint32) {
	ch := c.open.Load()
	if ch.Nack(0, true, true) != nil {
		return
	}
	if _, err := ch.QueueDeclarePassive(s.k.o.Queue, true, false, false, false, nil); err == nil {
		s.post(event{kind: wasReturned, stretch: stretch})
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
