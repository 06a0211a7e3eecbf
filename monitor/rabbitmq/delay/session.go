package delay

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
	"curfew/monitor/rabbitmq/keeper"
)

const (
	perChannel = 1000
	// openedAtOnce is how many channels are opened at a time when many messages are ready.
	openedAtOnce = 8
	lookEvery    = time.Second
	bindEvery    = time.Minute
	// consumerTimeout is what a consumer of a 4.3 quorum queue asks for.
	consumerTimeout = 365 * 24 * time.Hour
	closeTimeout    = 2 * time.Second
	// settled is how long RabbitMQ's statistics may not show what happened before a session.
	settled = 15 * time.Second
)

// session is one connection. One goroutine, run, writes; the others read.
type session struct {
	k         *Keeper
	conn      *cluster.Conn
	control   *amqp091.Channel // looks, and binds
	publisher *publisher
	retries   *retries // nil: mode delay
	links     links    // of AMQP 1.0
	amqp10    bool     // messages come over links
	aside     bool     // messages are put aside
	latest    bool     // it is a quorum queue of 4.3 or later: consumers may ask for a timeout of their own, and messages can be put aside
	began     time.Time
	facts     keeper.Facts
	ctx       context.Context
	wg        sync.WaitGroup
	failed    chan error
	opening   atomic.Bool // openFor is

	// Guarded by k.mu.
	channels  []*channel
	opened    int
	refusedAt time.Time // when RabbitMQ did not take a tombstone; zero: it took the last one
}

// runSession connects and delays messages until the connection is lost, which is the error. nil: ctx has ended, or another Curfew has the lease.
func (k *Keeper) runSession(ctx context.Context) (err error) {
	conn, err := k.o.Connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &session{k: k, conn: conn, ctx: inner, began: time.Now(), failed: make(chan error, 1)}
	s.publisher = &publisher{ctx: inner, spawn: s.wg.Go, connect: k.o.ConnectToPublish, log: k.log, slots: make(chan struct{}, publishedAtOnce)}
	defer func() {
		cancel()
		s.wg.Go(s.publisher.close)
		conn.Close()
		s.links.close()
		s.wg.Wait()
		if k.without = unreadable(err); k.without != nil {
			err = k.without
			k.trouble("engine", cluster.Words(err), time.Minute)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, c := range s.channels {
			c.gone = true
		}
		k.core.lose(nil)
		k.core.out = nil
	}()
	if s.facts, err = k.o.Facts(ctx); err != nil {
		return fmt.Errorf("facts: %w", err)
	}
	s.latest = s.facts.Family == cluster.Family43 && s.facts.Type == cluster.Quorum
	if s.control, err = conn.Channel(); err != nil {
		return fmt.Errorf("open a channel: %w", err)
	}
	if k.o.Retry != nil {
		s.retries = &retries{s: s, addresses: s.facts.Family != cluster.Family3, ways: map[string]way{}, due: map[uint64]int{}}
		if err := s.retries.look(); err != nil {
			return err
		}
	}
	if err := s.begin(); err != nil {
		return err
	}
	s.wg.Go(s.look)
	return s.run(ctx)
}

// fail ends the session.
func (s *session) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// begin asks how many messages wait, and consumes.
func (s *session) begin() error {
	k := s.k
	s.connectAMQP10()
	found, err := s.control.QueueDeclarePassive(k.o.Queue, true, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("ask for the queue: %w", err)
	}
	k.mu.Lock()
	k.core.ttl, k.core.putsAside, k.core.delayed = s.facts.TTL, s.aside, s.latest && s.retries == nil
	k.core.begin(k.nowLocked(), found.Messages)
	k.lookedAt, k.ready = k.o.Now(), found.Messages
	k.mu.Unlock()
	if err := s.open(); err != nil {
		return err
	}
	s.openFor(found.Messages)
	k.enter(keeper.Keeping, keeper.NoConsumer, "")
	return nil
}

// connectAMQP10 connects with AMQP 1.0 to RabbitMQ 4. Mode retry addresses what it discards. In mode delay, with a quorum queue, basic.nack
// would leave a trace in what is discarded before 4.3, and from 4.3 on messages can be put aside. If it cannot connect, or the last session could not
// read everything, everything is held over AMQP 0-9-1.
func (s *session) connectAMQP10() {
	if s.facts.Family == cluster.Family3 || s.retries == nil && (s.k.o.Aside == nil || s.facts.Type != cluster.Quorum) {
		return
	}
	err := s.k.without
	if err == nil {
		s.links.conn, err = s.k.o.ConnectAMQP10(s.ctx)
	}
	if err != nil {
		without := "messages arrive as redelivered, with x-delivery-count"
		switch {
		case s.retries != nil:
			without = fmt.Sprintf("messages come back by being published to %s, which Curfew's user has to be allowed to write, and twice if Curfew ends meanwhile", s.retries.back)
		case s.latest:
			without = "messages cannot be put aside in RabbitMQ, and all of them are held"
		}
		s.k.trouble("engine", fmt.Sprintf("%s: Curfew cannot use AMQP 1.0 (%s)", without, cluster.Words(err)), 0)
		return
	}
	s.amqp10, s.aside = true, s.retries == nil && s.latest && s.k.o.User != "" // an operator cancels what is aside by a message, with the user's name
	s.k.trouble("engine", "", 0)
}

// run writes what the core decides.
func (s *session) run(ctx context.Context) error {
	k := s.k
	passed := time.NewTicker(passedEvery)
	defer passed.Stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var lost <-chan struct{}
	if k.o.Shadows != nil {
		lost = k.o.Shadows.Lost()
	}
	others := make(chan struct{})
	s.wg.Go(func() { k.lease.Watch(s.ctx, func() { close(others) }) })
	for {
		if err := s.step(timer); err != nil {
			return err
		}
		select {
		case <-k.wake:
		case <-timer.C:
		case <-lost:
			k.mu.Lock()
			k.core.shadows = append(k.core.shadows, k.core.allShadows()...)
			k.mu.Unlock()
		case <-passed.C:
			s.passed()
			if err := s.roll(); err != nil {
				return err
			}
		case <-others:
			s.giveBack()
			return nil
		case <-ctx.Done():
			k.enter(keeper.Releasing, keeper.Stop, "stopped")
			s.giveBack()
			return nil
		case err := <-s.failed:
			return err
		case err := <-s.conn.Lost():
			return err
		}
	}
}

// step carries out what the core has decided, opens another channel if those there are nearly full, and sets the timer.
func (s *session) step(timer *time.Timer) error {
	k := s.k
	k.mu.Lock()
	now := k.nowLocked()
	k.core.tick(now)
	out, expired, shadows := k.core.out, k.core.expired, k.core.shadows
	k.core.out, k.core.expired, k.core.shadows = nil, nil, nil
	troubles := maps.Clone(k.core.troubles)
	clear(k.core.troubles)
	wake, held, room, free := k.core.wake(now), 0, 0, 0
	for _, c := range s.channels {
		held, room, free = held+c.held, room+c.holds, c.holds/4
	}
	k.mu.Unlock()
	for name, reason := range troubles {
		k.trouble(name, reason, time.Minute)
	}
	for i := range out {
		s.perform(&out[i])
	}
	if len(expired) > 0 && k.o.Expired != nil {
		k.o.Expired(expired)
	}
	if len(shadows) > 0 && k.o.Shadows != nil {
		k.o.Shadows.Put(shadows)
	}
	timer.Reset(max(0, wake.Sub(k.o.Now())))
	if held < room-free {
		return nil
	}
	if room >= k.o.MaxMessages {
		k.trouble("budget", fmt.Sprintf("%d messages may be held, and more wait: one of those is late if it is due sooner. Raise budget.messages.", k.o.MaxMessages), time.Minute)
		return nil
	}
	return s.open()
}

// perform writes one effect. If the channel is closed, its messages come again.
func (s *session) perform(e *effect) {
	switch {
	case e.tombstone != nil:
		s.publishTombstone(e.tombstone)
	case e.channel == nil:
		s.publisher.answer(e)
	default:
		_ = e.channel.line.settle(e)
	}
}

// passed forgets shadows that nobody needs any more.
func (s *session) passed() {
	k := s.k
	k.mu.Lock()
	now := k.o.Now()
	k.core.prune(now)
	k.core.publishAgain()
	before := now
	if len(k.core.waiting.Items) > 0 {
		before = min(before, k.core.waiting.Items[0].due)
	}
	settled := k.core.caughtUp
	k.mu.Unlock()
	if shadows, ok := k.o.Shadows.(Lasting); ok && settled {
		shadows.Passed(before.Add(-passedMargin))
	}
}

// look asks each second for the queue, or as often as Options.LookEvery says, and each minute binds it.
func (s *session) look() {
	k := s.k
	var b binder
	for boundAt := (time.Time{}); ; {
		if time.Since(boundAt) >= bindEvery {
			boundAt = time.Now()
			if s.retries == nil {
				b.bind(s)
				s.lookBehind()
			} else if err := s.retries.look(); err != nil {
				s.fail(err)
				return
			}
		}
		if s.retries != nil {
			s.retries.judge()
		}
		if s.control.IsClosed() && !s.conn.IsClosed() {
			var err error
			if s.control, err = s.conn.Channel(); err != nil {
				s.fail(fmt.Errorf("open a channel: %w", err))
				return
			}
		}
		k.mu.Lock()
		since := s.began
		if k.core.asideAt.After(since) {
			since = k.core.asideAt
		}
		k.mu.Unlock()
		nothing := k.core.delayed && k.o.Aside != nil && k.o.Aside(since.Add(settled)) == 0
		found, err := s.control.QueueDeclarePassive(k.o.Queue, true, false, false, false, nil)
		next := lookEvery
		if err == nil {
			k.mu.Lock()
			if k.core.caughtUp && k.o.LookEvery != nil {
				next = max(next, k.o.LookEvery())
			}
			k.lookedAt, k.ready = k.o.Now(), found.Messages
			k.core.looked(found.Messages)
			if nothing && found.Messages == 0 && k.core.caughtUp && len(k.core.aside) == 0 && !k.core.asideAt.After(since) {
				k.core.nothingAside()
				deadline.Wake(k.wake)
			}
			k.mu.Unlock()
			s.openFor(found.Messages) // after a crash RabbitMQ takes a moment to have ready what was held
		}
		select {
		case <-time.After(next):
		case <-s.ctx.Done():
			return
		}
	}
}
