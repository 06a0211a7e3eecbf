package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/memory"
)

// phase is how far a connection has come (AMQP 0-9-1 §2.2.4).
type phase uint8

const (
	awaitStartOk phase = iota
	awaitTuneOk
	awaitOpen
	running
	closing // connection.close is sent; everything but close-ok is ignored
)

// connection is one client's socket. Its fields belong to the reader goroutine;
// others reach the client through out, and the channels through their locks.
type connection struct {
	srv *Server
	nc  net.Conn
	log *zap.Logger
	out outbox

	ctx    context.Context // ends, with the exception as its cause, when the connection is forced to close
	cancel context.CancelCauseFunc

	accepted time.Time
	tls      *tls.ConnectionState // nil: none

	phase     phase
	session   *broker.Session
	rights    *broker.Rights
	vhost     *broker.VHost
	user      string
	frameMax  uint32
	chanMax   uint16
	tables    amqp.Limits
	heartbeat time.Duration
	readUntil time.Time // when the read deadline was set last
	leaveBy   time.Time // how long a client that closing was told may stay

	mechanism  string                   // of the login
	properties []byte                   // of the client, encoded
	shown      atomic.Pointer[identity] // nil unless open
	traffic    traffic
	held       atomic.Bool  // by the broker's gate
	flowed     atomic.Int64 // Unix µs of when it was last made to wait for consumers; 0 never

	account *memory.Account // nil until the client has logged in
	holds   atomic.Int64    // bytes, not all of which are drawn from it
	paid    int64           // drawn for that

	cancelNotify bool // the client takes basic.cancel
	takesBlocked bool // the client takes connection.blocked
	consuming    bool // has had consumers when pace was called last
	published    bool // all or a part of a message, since hold was asked last
	authClose    bool // the client takes connection.close for a failed login

	reminding sync.Mutex
	reminded  bool          // look for overdue deliveries
	nudged    chan struct{} // tells hold of it

	listing  sync.Mutex // held by the reader to change channels, by others to read them
	channels map[uint16]*channel
	last     *channel // the one of the last frame
	acks     settling // settlements read and not yet handed to their queues
	dirty    []*channel
	ended    bool
}

const (
	handshakeTimeout = 10 * time.Second
	preAuthFrameMax  = 8192
)

// preAuthTables bound what an unknown client may have us parse.
var preAuthTables = amqp.Limits{Depth: 4, Entries: 128, Values: 256}

func newConnection(s *Server, nc net.Conn) *connection {
	c := &connection{
		srv: s, nc: nc, accepted: time.Now(), log: s.log.WithLazy(zap.Stringer("conn", nc.RemoteAddr())),
		frameMax: preAuthFrameMax, tables: preAuthTables,
		nudged: make(chan struct{}, 1), channels: map[uint16]*channel{},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.out.init(c.write)
	return c
}

// run serves the connection until it ends, and cleans up after it.
func (c *connection) run() {
	defer c.cancel(nil)
	err := c.guard(c.read)
	if left := c.guard(func() error { c.leave(); return nil }); err == nil {
		err = left
	}
	c.out.close()
	<-c.out.gone
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.log.Info("connection ended", zap.Error(err))
	}
}

// write runs the outbox's writer. What it sends last is followed by the end of the socket.
func (c *connection) write() {
	err := c.guard(func() error { return c.out.write(c.nc, &c.traffic) })
	if err != nil {
		c.log.Debug("write failed", zap.Error(err))
	}
	if err != nil || c.out.ended() {
		c.nc.Close()
		c.out.kill()
	}
}

// guard turns a panic, which would be a bug, into the end of one connection.
func (c *connection) guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("panic while serving a connection; please report it", zap.Any("panic", r), zap.Stack("stack"))
			c.out.send(0, closeMethod(amqp.NewException(amqp.InternalError, 0, 0, "broker error")))
			err = errors.New("server: panic")
		}
	}()
	return fn()
}

// channel finds the channel of a frame; nil when the frame opened it or is to be
// ignored.
func (c *connection) channel(f amqp.Frame) (*channel, error) {
	if c.last != nil && c.last.id == f.Channel {
		return c.last, nil
	}
	ch, ok := c.channels[f.Channel]
	if ok {
		c.last = ch
		return ch, nil
	}
	id, err := amqp.PeekMethod(f.Payload)
	if f.Type != amqp.FrameMethod || err != nil || id != amqp.ChannelOpenID {
		return nil, amqp.NewException(amqp.ChannelError, 0, 0, "expected 'channel.open'")
	}
	if f.Channel > c.chanMax {
		return nil, amqp.NewException(amqp.NotAllowed, id.Class(), id.Method(),
			"number of channels opened (%d) has reached the negotiated channel_max (%d)", len(c.channels), c.chanMax)
	}
	if err := c.session.OpenChannel(); err != nil {
		return nil, amqp.Answering(err, id)
	}
	c.addChannel(newChannel(c, f.Channel))
	c.out.send(f.Channel, &amqp.ChannelOpenOk{})
	return nil, nil
}

func (c *connection) addChannel(ch *channel) {
	c.listing.Lock()
	c.channels[ch.id] = ch
	c.listing.Unlock()
	c.holds.Add(channelBytes)
	c.srv.totals.channelsOpened.Add(1)
}

// drop forgets a closed channel.
func (c *connection) drop(ch *channel) {
	c.listing.Lock()
	delete(c.channels, ch.id)
	c.listing.Unlock()
	c.holds.Add(-channelBytes)
	c.srv.totals.channelsClosed.Add(1)
	c.session.CloseChannel()
	if c.last == ch {
		c.last = nil
	}
	if c.consuming {
		c.pace()
	}
}

// flush hands the publishes and settlements gathered so far to their queues.
func (c *connection) flush() {
	for i, ch := range c.dirty {
		if ch == nil {
			continue // it was flushed when a panic ended that
		}
		c.dirty[i] = nil
		ch.flushPublishes()
	}
	c.dirty = c.dirty[:0]
	c.acks.flush()
}
