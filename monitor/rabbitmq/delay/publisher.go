package delay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
	"go.uber.org/zap"

	"curfew/broker/deadline"
	"curfew/monitor/rabbitmq/cluster"
)

const (
	// publishedAtOnce is how many publishes wait for their confirms.
	publishedAtOnce = 16
	// answersAtOnce is how many answers wait to be published. There are more only in an alarm, and those are dropped.
	answersAtOnce = 10_000
)

// errUnanswered: the connection was lost before RabbitMQ has answered, and it may have what was published.
var errUnanswered = errors.New("RabbitMQ has not answered")

// publisher publishes over a connection of its own: in an alarm RabbitMQ reads nothing more from a connection that has published, no acknowledgement either.
// It waits for a confirm as long as the connection is there, since what is published again may be there twice. Only Cancel waits no longer than confirmTimeout.
type publisher struct {
	ctx     context.Context // of the session
	connect func(context.Context) (*amqp091.Connection, error)
	log     *zap.Logger
	slots   chan struct{} // one for each publish
	answers atomic.Int64  // how many wait
	spawn   func(func())

	mu   sync.Mutex
	conn *amqp091.Connection // nil: none yet
}

// connection returns the connection, which it opens if there is none.
func (p *publisher) connection() (_ *amqp091.Connection, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	if p.conn == nil || p.conn.IsClosed() {
		p.conn, err = p.connect(p.ctx)
	}
	return p.conn, err
}

// close ends what waits. It is called once ctx has ended.
func (p *publisher) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		_ = p.conn.CloseDeadline(time.Now().Add(closeTimeout))
	}
}

// publish publishes what gets to a queue. The error: RabbitMQ does not have it or, if that is errUnanswered, may not have it.
func (p *publisher) publish(exchange, key string, m amqp091.Publishing) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-p.ctx.Done():
		return errUnanswered
	}
	conn, err := p.connection()
	if err == nil {
		err = p.publishOver(conn, exchange, key, m)
	}
	if err != nil && (conn == nil || conn.IsClosed() || p.ctx.Err() != nil) {
		return fmt.Errorf("%w: %w", errUnanswered, err)
	}
	return err
}

func (p *publisher) publishOver(conn *amqp091.Connection, exchange, key string, m amqp091.Publishing) error {
	ch, err := conn.Channel() // which RabbitMQ closes if it refuses
	if err != nil {
		return err
	}
	defer p.spawn(func() { _ = ch.Close() }) // it waits for RabbitMQ
	returned := ch.NotifyReturn(make(chan amqp091.Return, 1))
	if err := ch.Confirm(false); err != nil {
		return err
	}
	confirm, err := ch.PublishWithDeferredConfirmWithContext(p.ctx, exchange, key, true, false, m)
	if err != nil {
		return err
	}
	there, err := confirm.WaitContext(p.ctx)
	switch {
	case err == nil && len(returned) > 0:
		return errors.New("no queue has got it")
	case err == nil && !there:
		return errors.New("RabbitMQ has not taken it")
	}
	return err
}

// answer tells the sender of a command what became of it. Nothing depends on it.
func (p *publisher) answer(e *effect) {
	if max(len(e.replyTo), len(e.correl)) > math.MaxUint8 || p.answers.Load() > answersAtOnce { // AMQP 1.0 has longer ones
		return
	}
	p.answers.Add(1)
	m := amqp091.Publishing{CorrelationId: e.correl, ContentType: "text/plain", Body: []byte(e.answer)}
	p.spawn(func() {
		defer p.answers.Add(-1)
		if err := p.publish("", e.replyTo, m); err != nil {
			p.log.Debug("a command could not be answered", zap.Error(err))
		}
	})
}

// publishTombstone publishes a tombstone. If it is refused, so are the others for a moment, and they are published again, by the next session or after
// passedEvery.
func (s *session) publishTombstone(tombstone *held) {
	k := s.k
	k.mu.Lock()
	defer k.mu.Unlock()
	if !tombstone.unconfirmed || tombstone.published || k.core.tombstones[tombstoneKey{tombstone.id, tombstone.user}] != tombstone {
		return
	}
	if time.Since(s.refusedAt) < passedEvery/2 {
		tombstone.tell(false)
		deadline.Wake(k.wake)
		return
	}
	tombstone.published = true
	until, headers := tombstone.since, amqp091.Table{"x-cancel": tombstone.id, beforeHeader: int64(tombstone.since)}
	if tombstone.user != k.o.User {
		headers[userHeader] = tombstone.user
	}
	s.wg.Go(func() {
		err := s.publisher.publish("", k.o.Queue, amqp091.Publishing{DeliveryMode: amqp091.Persistent, UserId: k.o.User, Headers: headers})
		reason := ""
		if err != nil {
			reason = fmt.Sprintf("that %s was cancelled is known only to this Curfew, which cannot publish that to the queue: let its user write to amq.default (%s)", tombstone.id, cluster.Words(err))
		}
		if errors.Is(err, errUnanswered) {
			k.log.Info("a tombstone is published again on the next connection", zap.Error(err))
		} else {
			k.trouble("tombstone", reason, 3*passedEvery)
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		defer deadline.Wake(k.wake)
		tombstone.published, s.refusedAt = false, time.Time{}
		switch {
		case errors.Is(err, errUnanswered):
		case err != nil:
			s.refusedAt = time.Now()
			tombstone.tell(false)
		case tombstone.since == until:
			tombstone.confirm()
		default: // it was given again meanwhile
			k.core.publish(tombstone)
		}
	})
}
