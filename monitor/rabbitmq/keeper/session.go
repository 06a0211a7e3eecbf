package keeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

const (
	eventsAtOnce = 256
	stopTimeout  = 8 * time.Second // for the last release, before the process is ended for good
)

// session is one connection. One goroutine, run, owns the core and the maps. Other goroutines wait for RabbitMQ's answers
// and post them as events.
type session struct {
	k        *Keeper
	conn     *cluster.Conn
	events   chan input
	ctx      context.Context // ends with the session: nobody reads events after that
	wg       sync.WaitGroup
	channels map[uint32]*channel
	tags     int
	looker   *amqp091.Channel // used by one look at a time
	facts    Facts
	scratch  []command
	expired  []Expiry
	fresh    []Shadow
}

// runSession connects and keeps the queue until the connection is lost, which is the error. nil: everything has been given
// back, because ctx has ended or another Curfew has the lease.
func (k *Keeper) runSession(ctx context.Context) error {
	conn, err := k.o.Connect(ctx)
	if err != nil {
		return fmt.Errorf("keeper: connect: %w", err)
	}
	inner, cancel := context.WithCancel(context.Background())
	s := &session{k: k, conn: conn, ctx: inner, events: make(chan input, 4096), channels: map[uint32]*channel{}}
	defer func() {
		cancel()
		conn.Close()
		s.wg.Wait()
	}()
	if s.facts = k.facts; s.facts != (Facts{}) { // RabbitMQ may be slow to answer while it misses a node
		s.facts.Others = min(s.facts.Others, Unclear)
		s.spawn(s.learn)
	} else if s.facts, err = k.o.Facts(ctx); err != nil {
		return fmt.Errorf("keeper: facts: %w", err)
	}
	defer func() { k.facts = s.facts }()
	return s.run(ctx)
}

// post hands an input to run; it is dropped when the session has ended.
func (s *session) post(e input) {
	select {
	case s.events <- e:
	case <-s.ctx.Done():
	}
}

func (s *session) spawn(fn func()) { s.wg.Go(fn) }

func (s *session) run(ctx context.Context) error {
	k := s.k
	timer := time.NewTimer(0)
	defer timer.Stop()
	s.spawn(func() {
		k.lease.Watch(s.ctx, func() {
			s.post(func(c *core, now deadline.Instant) {
				c.beginRelease(now, Observing, leased)
				c.advance(now)
			})
		})
	})
	var lost <-chan struct{}
	if k.o.Shadows != nil {
		lost = k.o.Shadows.Lost()
	}
	done := ctx.Done()
	var stopBy <-chan time.Time
	in := input(func(c *core, now deadline.Instant) { c.connect(now, s.facts) })
	for {
		if s.step(in, timer) {
			return nil
		}
		in = nil
		select {
		case in = <-s.events:
		case <-timer.C:
		case e := <-k.o.Events:
			in = s.clusterEvent(e)
		case <-lost:
			in = func(c *core, now deadline.Instant) { s.fresh = append(s.fresh, c.line.shadows()...) }
		case <-done:
			done, stopBy = nil, time.After(stopTimeout)
			in = func(c *core, now deadline.Instant) { c.stop(now, stopReason(ctx)) }
		case <-stopBy:
			return errors.New("keeper: not everything was given back in time")
		case err := <-s.conn.Lost():
			return fmt.Errorf("keeper: %w", err)
		}
	}
}

// step hands the input and further ones to the core, carries out the core's commands and sets the timer. It reports
// whether the session is over.
func (s *session) step(in input, timer *time.Timer) (over bool) {
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
			e(c, k.o.Now())
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
		s.k.o.Expired(s.expired)
	}
	if len(s.fresh) > 0 {
		if s.k.o.Shadows != nil {
			s.k.o.Shadows.Put(s.fresh)
		}
		s.fresh = s.fresh[:0]
	}
}

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
			c.lost(now, id, why, cluster.Words(err))
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
