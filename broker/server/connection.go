package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/server/internal/deliveries"
	"curfew/broker/server/internal/manage"
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
// reach the client through out, and the channels through their deliveries.
type connection struct {
	srv *Server
	nc  net.Conn // may be replaced in the handshake
	log *zap.Logger
	out deliveries.Outbox

	ctx      context.Context // ends when the connection is forced to close; the cause is the exception
	cancel   context.CancelCauseFunc
	deadline readDeadline
	socket   net.Conn // what nc is without TLS; any goroutine may set its deadlines, and close it: without an answer, even one from TLS, which could block

	phase      phase
	handshake  *handshake // nil once the connection is open
	session    *broker.Session
	user       manage.Declarer // its rights, once the connection is open
	userName   string
	frameMax   uint32
	channelMax uint16
	tables     amqp.Limits

	ten          *client10 // nil: the client speaks AMQP 0-9-1
	cancelNotify bool      // the client supports basic.cancel
	takesBlocked bool      // the client supports connection.blocked
	published    bool      // all or part of a message, since waitWhileBlocked was last called
	ended        bool

	blocked  atomic.Bool              // by a resource alarm
	flow     flow                     // held up by consumers and turns
	identity atomic.Pointer[identity] // nil unless the connection is open

	reads, received atomic.Uint64 // from the socket: calls, octets

	usage    deliveries.Memory
	channels channelTable
	acks     deliveries.Batch // settlements not yet passed to their queues
	dirty    []*channel       // with publishes not yet passed to their queues
}

// preAuthFrameMax is the size of the frames that the server takes from an unknown client.
const preAuthFrameMax = 8192

// preAuthTables bounds the tables that the server parses for an unknown client.
var preAuthTables = amqp.Limits{Depth: 4, Entries: 128, Values: 256}

func newConnection(s *Server, nc net.Conn) *connection {
	c := &connection{
		srv: s, nc: nc, socket: nc, log: s.log.WithLazy(zap.Stringer("conn", nc.RemoteAddr())),
		frameMax: preAuthFrameMax, tables: preAuthTables, channels: channelTable{open: map[uint16]*channel{}},
	}
	if t, ok := nc.(*tls.Conn); ok {
		c.socket = t.NetConn()
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.handshake = newHandshake(c)
	c.deadline.nc, c.deadline.checkCalled = c.socket, make(chan struct{}, 1)
	c.out.Init(c.write)
	return c
}

// run serves the connection until it ends, and then cleans up.
func (c *connection) run() {
	defer c.cancel(nil)
	err := c.guard(c.read)
	if left := c.guard(func() error { c.releaseAll(); return nil }); err == nil {
		err = left
	}
	c.out.Close()
	<-c.out.Gone
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.log.Info("connection ended", zap.Error(err))
	}
}

// write runs the outbox's writer. After the last frame it closes the socket.
func (c *connection) write() {
	err := c.guard(func() error { return c.out.Write(c.nc) })
	if err != nil {
		c.log.Debug("write failed", zap.Error(err))
	}
	if err != nil || c.out.Ended() {
		c.nc.Close()
		c.out.Kill()
	}
}

// guard turns a panic, which would be a bug, into the end of this connection.
func (c *connection) guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.log.Error("panic while serving a connection; please report it", zap.Any("panic", r), zap.Stack("stack"))
			sendClose(c, amqp.NewException(amqp.InternalError, 0, 0, "broker error"))
			err = errors.New("server: panic")
		}
	}()
	return fn()
}

// channel returns the channel of a frame, or nil if the frame opened the channel or is to
// be ignored.
func (c *connection) channel(f amqp.Frame) (*channel, error) {
	if ch := c.channels.open[f.Channel]; ch != nil {
		return ch, nil
	}
	id, err := amqp.PeekMethod(f.Payload)
	if f.Type != amqp.FrameMethod || err != nil || id != amqp.ChannelOpenID {
		return nil, amqp.NewException(amqp.ChannelError, 0, 0, "expected 'channel.open'")
	}
	if f.Channel > c.channelMax {
		return nil, amqp.NewException(amqp.NotAllowed, id.Class(), id.Method(),
			"number of channels opened (%d) has reached the negotiated channel_max (%d)", c.channels.count(), c.channelMax)
	}
	if _, err := openChannel(c, f.Channel); err != nil {
		return nil, amqp.Answering(err, id)
	}
	c.out.Send(f.Channel, &amqp.ChannelOpenOk{})
	return nil, nil
}

// removeChannel removes a closed channel.
func (c *connection) removeChannel(ch *channel) {
	c.channels.remove(ch)
	c.usage.Add(-channelBytes)
	c.srv.Totals.ChannelsClosed.Add(1)
	c.session.CloseChannel()
	if c.flow.consuming {
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
	c.acks.Flush()
	c.endTurn()
}

const (
	channelBytes = 2 << 10 // with its room for properties and two names

	// maxUsedBytes is how much one connection may use in addition to the largest message. It also
	// applies if the budget is unlimited.
	maxUsedBytes = 64 << 20
)

// evict closes the connection that uses the most. A client that does not read is cut off.
func (c *connection) evict(err error) {
	c.forceClose(deliveries.OverBudget(err))
	time.AfterFunc(closeGrace, func() { c.socket.Close() })
}
