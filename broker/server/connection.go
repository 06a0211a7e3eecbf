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

// phase is the state of a connection (AMQP 0-9-1 §2.2.4).
type phase uint8

const (
	awaitStartOk phase = iota
	awaitTuneOk
	awaitOpen
	running
	closing // connection.close is sent; everything but close-ok is ignored
)

// connection is one client's socket. Its fields belong to the reader goroutine. Others
// reach the client through out, and the channels through their locks.
type connection struct {
	srv *Server
	nc  net.Conn
	log *zap.Logger
	out outbox

	ctx    context.Context // ends when the connection is forced to close; the cause is the exception
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
	readUntil time.Time // when the read deadline was last set
	leaveBy   time.Time // a client that was sent connection.close may stay until then

	mechanism  string                   // of the login
	properties []byte                   // of the client, encoded
	identity   atomic.Pointer[identity] // nil unless the connection is open
	traffic    traffic
	blocked    atomic.Bool  // by a resource alarm
	lastFlow   atomic.Int64 // when it was last made to wait for consumers, Unix µs; 0: never

	account   *memory.Account // nil until the client has logged in
	heldBytes atomic.Int64    // bytes that the connection holds; see accounted
	accounted int64           // bytes drawn from the account for them

	cancelNotify bool // the client supports basic.cancel
	takesBlocked bool // the client supports connection.blocked
	consuming    bool // had consumers when updatePaced was last called
	published    bool // all or part of a message, since waitWhileBlocked was last called
	authClose    bool // the client supports connection.close after a failed login

	ackCheckMu     sync.Mutex
	ackCheck       bool          // check for overdue deliveries
	ackCheckCalled chan struct{} // wakes waitWhileBlocked for that

	listing  sync.Mutex // held by the reader to change channels, by others to read them
	channels map[uint16]*channel
	last     *channel    // of the last frame
	acks     settleBatch // settlements not yet passed to their queues
	dirty    []*channel
	ended    bool
}

const (
	handshakeTimeout = 10 * time.Second
	preAuthFrameMax  = 8192
)

// preAuthTables bounds the tables that the server parses for an unknown client.
var preAuthTables = amqp.Limits{Depth: 4, Entries: 128, Values: 256}

func newConnection(s *Server, nc net.Conn) *connection {
	c := &connection{
		srv: s, nc: nc, accepted: time.Now(), log: s.log.WithLazy(zap.Stringer("conn", nc.RemoteAddr())),
		frameMax: preAuthFrameMax, tables: preAuthTables,
		ackCheckCalled: make(chan struct{}, 1), channels: map[uint16]*channel{},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.out.init(c.write)
	return c
}

// run serves the connection until it ends, and then cleans up.
func (c *connection) run() {
	defer c.cancel(nil)
	err := c.guard(c.read)
	if left := c.guard(func() error { c.releaseAll(); return nil }); err == nil {
		err = left
	}
	c.out.close()
	<-c.out.gone
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.log.Info("connection ended", zap.Error(err))
	}
}

// write runs the outbox's writer. After the last frame it closes the socket.
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

// guard turns a panic, which would be a bug, into the end of this connection.
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

// channel returns the channel of a frame, or nil if the frame opened the channel or is to
// be ignored.
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
	c.heldBytes.Add(channelBytes)
	c.srv.totals.channelsOpened.Add(1)
}

// removeChannel removes a closed channel.
func (c *connection) removeChannel(ch *channel) {
	c.listing.Lock()
	delete(c.channels, ch.id)
	c.listing.Unlock()
	c.heldBytes.Add(-channelBytes)
	c.srv.totals.channelsClosed.Add(1)
	c.session.CloseChannel()
	if c.last == ch {
		c.last = nil
	}
	if c.consuming {
		c.updatePaced()
	}
}

// flush passes the gathered publishes and settlements to their queues.
func (c *connection) flush() {
	for i, ch := range c.dirty {
		if ch == nil {
			continue // it was being flushed when a panic occurred
		}
		c.dirty[i] = nil
		ch.flushPublishes()
	}
	c.dirty = c.dirty[:0]
	c.acks.flush()
}
