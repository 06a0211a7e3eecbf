package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	amqp091 "github.com/rabbitmq/amqp091-go"
)

// closeTimeout is how long closing waits for RabbitMQ.
const closeTimeout = 2 * time.Second

// Pool has connections that users share when there are more of them than Most. Each connection costs RabbitMQ heartbeats and statistics: a
// thousand keep it so busy that it misses heartbeats, and when they then come back together it is busier still. It is safe for concurrent use.
type Pool struct {
	// Open opens a connection.
	Open func(ctx context.Context, purpose string) (*amqp091.Connection, error)
	// Most is how many connections there are at most, besides those that are not shared.
	Most int

	mu   sync.Mutex
	open []*shared
}

// shared is a connection with its users, which the pool guards.
type shared struct {
	users map[*Conn]struct{}
	ready chan struct{} // closed when the following are known
	conn  *amqp091.Connection
	err   error // why it could not be opened
}

// Conn is what one user has of a connection: the channels that it opens. It ends with the connection.
type Conn struct {
	conn *amqp091.Connection
	pool *Pool
	of   *shared
	lost chan error

	mu       sync.Mutex
	channels []*amqp091.Channel
	spoilt   bool // what one of its users did has ended the connection, or it needs more channels than are left
	closed   bool
}

// Connect returns the connection that fewest use, or a new one while there are fewer than Most. last is what the user had before; nil: nothing. If one of
// its users may have ended that, the next is not shared, so that whoever did it disturbs nobody else again. The error is that of Open, or of ctx.
func (p *Pool) Connect(ctx context.Context, purpose string, last *Conn) (*Conn, error) {
	for {
		c, opens := p.pick(last.isSpoilt())
		s := c.of
		if opens {
			s.conn, s.err = p.Open(ctx, purpose)
			if close(s.ready); s.err == nil {
				go p.watch(s, s.conn.NotifyClose(make(chan *amqp091.Error, 1)))
			}
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			go c.abandon()
			return nil, ctx.Err()
		}
		if c.conn = s.conn; s.err == nil {
			return c, nil // if it has been lost meanwhile, Lost says so
		}
		p.leave(c)
		if opens {
			return nil, s.err
		} // otherwise whoever was to open it has given up
	}
}

// pick takes a part of a connection. opens: the caller has to open that.
func (p *Pool) pick(alone bool) (c *Conn, opens bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c = &Conn{pool: p, lost: make(chan error, 1)}
	p.open = slices.DeleteFunc(p.open, func(s *shared) bool { return len(s.users) == 0 || s.isOver() })
	if alone || len(p.open) < p.Most {
		c.of, opens = &shared{users: map[*Conn]struct{}{}, ready: make(chan struct{})}, true
	} else {
		c.of = slices.MinFunc(p.open, func(a, b *shared) int { return len(a.users) - len(b.users) })
	}
	c.of.users[c] = struct{}{}
	if opens && !alone {
		p.open = append(p.open, c.of)
	}
	return c, opens
}

// isOver reports whether it could not be opened, or has been lost.
func (s *shared) isOver() bool {
	select {
	case <-s.ready:
		return s.err != nil || s.conn.IsClosed()
	default:
		return false
	}
}

// leave takes the user out. It reports whether that was the last one: there will be no other.
func (p *Pool) leave(c *Conn) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(c.of.users, c)
	return len(c.of.users) == 0
}

// abandon closes what it may be the only one to have once it is there.
func (c *Conn) abandon() {
	if <-c.of.ready; c.of.err != nil {
		c.pool.leave(c)
		return
	}
	c.conn = c.of.conn
	c.Close()
}

// watch waits for the end of a connection, and tells its users.
func (p *Pool) watch(s *shared, closed <-chan *amqp091.Error) {
	err, said := <-closed
	p.mu.Lock()
	users := maps.Clone(s.users)
	p.mu.Unlock()
	for c := range users {
		why := errors.New("connection closed")
		if said {
			why = fmt.Errorf("connection closed: %w", err)
		}
		c.lose(why, said && (err.Code == amqp091.InternalError || err.Code == amqp091.ChannelError))
	}
}

func (c *Conn) lose(err error, spoilt bool) {
	c.mu.Lock()
	c.spoilt = c.spoilt || spoilt
	c.mu.Unlock()
	select {
	case c.lost <- err:
	default:
	}
}

func (c *Conn) isSpoilt() bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spoilt
}

// Lost says why it has ended, once, but not after Close.
func (c *Conn) Lost() <-chan error { return c.lost }

// IsClosed reports whether the connection has ended.
func (c *Conn) IsClosed() bool { return c.conn.IsClosed() }

// Channel opens a channel. If others have taken too many, it has ended.
func (c *Conn) Channel() (*amqp091.Channel, error) {
	ch, err := c.conn.Channel()
	if errors.Is(err, amqp091.ErrChannelMax) && !c.isAlone() {
		c.lose(errors.New("queues that share a connection have taken all of its channels"), true)
	}
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		go ch.Close()
		return nil, amqp091.ErrClosed
	}
	if len(c.channels) == cap(c.channels) {
		c.channels = slices.DeleteFunc(c.channels, (*amqp091.Channel).IsClosed)
	}
	c.channels = append(c.channels, ch)
	return ch, nil
}

func (c *Conn) isAlone() bool {
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	return len(c.of.users) == 1
}

// Close closes the channels, so that RabbitMQ has all messages again, and with its last user the connection.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closed = true
	channels := c.channels
	c.mu.Unlock()
	if c.pool.leave(c) {
		_ = c.conn.CloseDeadline(time.Now().Add(closeTimeout))
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, ch := range channels {
			_ = ch.Close() // it waits for RabbitMQ
		}
	}()
	select {
	case <-done:
	case <-time.After(closeTimeout):
		_ = c.conn.CloseDeadline(time.Now().Add(closeTimeout)) // a channel does not answer: the others come back on another one
	}
}
