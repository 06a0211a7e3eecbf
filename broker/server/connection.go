package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker"
	"curfew/broker/amqp"
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
	interval  chan time.Duration // tells the writer
	readUntil time.Time          // when the read deadline was set last
	leaveBy   time.Time          // how long a client that closing was told may stay

	mechanism  string // of the login
	properties amqp.Table
	shown      atomic.Pointer[identity] // nil unless open
	traffic    traffic
	held       atomic.Bool // by the broker's gate

	cancelNotify bool // the client takes basic.cancel
	takesBlocked bool // the client takes connection.blocked
	published    bool // since hold was asked last
	authClose    bool // the client takes connection.close for a failed login

	reminding sync.Mutex
	reminded  bool // look for overdue deliveries

	listing    sync.Mutex // held by the reader to change channels, by others to read them
	channels   map[uint16]*channel
	last       *channel // the one of the last frame
	assembling int      // octets of unfinished bodies on all channels
	acks       settling // settlements read and not yet handed to their queues
	dirty      []*channel
	ended      bool
}

const (
	handshakeTimeout = 10 * time.Second
	preAuthFrameMax  = 8192
	readBufferMin    = 1 << 10
	readBufferMax    = 256 << 10
	// closingTimeout is how long a client has to answer connection.close.
	closingTimeout = closeGrace
)

// preAuthTables bound what an unknown client may have us parse.
var preAuthTables = amqp.Limits{Depth: 4, Entries: 128, Values: 256}

func newConnection(s *Server, nc net.Conn) *connection {
	c := &connection{
		srv: s, nc: nc, accepted: time.Now(), log: s.log.WithLazy(zap.Stringer("conn", nc.RemoteAddr())),
		frameMax: preAuthFrameMax, tables: preAuthTables,
		interval: make(chan time.Duration, 1), channels: map[uint16]*channel{},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.out.init()
	return c
}

// run serves the connection until it ends, and cleans up after it.
func (c *connection) run() {
	defer c.cancel(nil)
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer c.nc.Close()
		if err := c.guard(func() error { return c.out.write(c.nc, c.interval, &c.traffic) }); err != nil {
			c.log.Debug("write failed", zap.Error(err))
		}
	}()
	err := c.guard(c.read)
	if left := c.guard(func() error { c.leave(); return nil }); err == nil {
		err = left
	}
	c.out.close()
	<-written
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
		c.log.Info("connection ended", zap.Error(err))
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

// read is the reader: it parses what has arrived frame by frame in place, then
// enters the publishes and settlements gathered from it, then reads on.
func (c *connection) read() error {
	if err := c.secure(); err != nil {
		return err
	}
	if err := c.protocolHeader(); err != nil {
		return err
	}
	own := make([]byte, readBufferMin)
	buf, from, to := own, 0, 0
	for !c.ended {
		if to == len(buf) {
			buf, from, to = makeRoom(buf, from, to)
		}
		c.extendDeadline()
		if err := c.obey(); err != nil {
			return err
		}
		if err := c.closeOverdue(); err != nil {
			return err
		}
		n, err := c.nc.Read(buf[to:])
		if err != nil {
			c.flush()
			if c.interrupted(err) {
				continue
			}
			return c.readError(err)
		}
		c.traffic.read(n)
		to += n
		used, err := c.frames(buf[from:to])
		c.flush()
		if err != nil {
			return err
		}
		from += used
		if from == to {
			from, to = 0, 0
			if len(buf) > readBufferMin { // the next read may be long in coming
				recycle(buf)
				buf = own
			}
		}
		c.out.waitRoom()
		if c.published {
			c.published = false
			if err := c.hold(); err != nil {
				if err := c.fail(0, err); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// makeRoom moves what is unparsed to the front, in a larger buffer if it takes
// more than half. Frames are bounded, so the buffer is. The buffer it was in is
// given back.
func makeRoom(buf []byte, from, to int) ([]byte, int, int) {
	size := len(buf)
	if from < size/2 || size < readBufferMax && from == 0 {
		size *= 2
	}
	if size == len(buf) {
		return buf, 0, copy(buf, buf[from:to])
	}
	grown := newBuffer(size)
	grown = grown[:cap(grown)]
	n := copy(grown, buf[from:to])
	if len(buf) > readBufferMin {
		recycle(buf)
	}
	return grown, 0, n
}

// frames handles the whole frames in b and returns how many octets they took.
func (c *connection) frames(b []byte) (used int, err error) {
	for !c.ended {
		f, n, err := amqp.ParseFrame(b[used:], c.frameMax)
		if err == nil && n == 0 {
			return used, nil
		}
		if err == nil {
			err = c.frame(f)
		}
		if err != nil {
			if err := c.fail(f.Channel, err); err != nil {
				return used, err
			}
			if n == 0 { // the stream cannot be followed any further
				return used, c.linger()
			}
		}
		used += n
	}
	return used, nil
}

// frame handles one frame.
func (c *connection) frame(f amqp.Frame) error {
	switch {
	case c.phase == closing:
		return c.whileClosing(f)
	case f.Type == amqp.FrameHeartbeat:
		if f.Channel != 0 {
			return amqp.Unexpected(f)
		}
		return nil
	case f.Channel == 0:
		return c.connectionMethod(f)
	case c.phase != running:
		return amqp.NewException(amqp.ChannelError, 0, 0, "frame on channel %d before connection.open", f.Channel)
	}
	ch, err := c.channel(f)
	if ch == nil || err != nil {
		return err
	}
	return ch.frame(f)
}

// whileClosing waits for close-ok.
func (c *connection) whileClosing(f amqp.Frame) error {
	if f.Type != amqp.FrameMethod || f.Channel != 0 {
		return nil
	}
	switch id, _ := amqp.PeekMethod(f.Payload); id {
	case amqp.ConnectionCloseOkID:
		c.ended = true
	case amqp.ConnectionCloseID: // both sides close at once
		c.out.send(0, &amqp.ConnectionCloseOk{})
		c.ended = true
	}
	return nil
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
	c.srv.totals.channelsOpened.Add(1)
}

// drop forgets a closed channel.
func (c *connection) drop(ch *channel) {
	c.listing.Lock()
	delete(c.channels, ch.id)
	c.listing.Unlock()
	c.srv.totals.channelsClosed.Add(1)
	c.session.CloseChannel()
	if c.last == ch {
		c.last = nil
	}
}

// flush hands the publishes and settlements gathered so far to their queues.
func (c *connection) flush() {
	for i, ch := range c.dirty {
		c.dirty[i] = nil
		ch.flushPublishes()
	}
	c.dirty = c.dirty[:0]
	c.acks.flush()
}

// fail answers an error: a soft exception closes channel id, any other the
// connection. What it returns ends the connection at once.
func (c *connection) fail(id uint16, err error) error {
	var e *amqp.Exception
	if !errors.As(err, &e) {
		if errors.Is(err, errEnd) {
			return err
		}
		c.log.Error("internal error", zap.Error(err))
		e = amqp.NewException(amqp.InternalError, 0, 0, "%s", err)
	}
	c.flush()
	if c.phase < running {
		c.log.Warn("handshake failed", zap.String("reason", e.Text))
	}
	if ch := c.channels[id]; id != 0 && ch != nil && !e.Hard() {
		c.log.Info("channel closed", zap.Uint16("channel", id), zap.String("reason", e.Text))
		ch.closeWith(e)
		return nil
	}
	if c.phase == closing {
		return nil
	}
	c.log.Warn("connection closed", zap.String("reason", e.Text))
	c.out.send(0, closeMethod(e))
	c.startClosing()
	return nil
}

func closeMethod(e *amqp.Exception) *amqp.ConnectionClose {
	return &amqp.ConnectionClose{Closing: amqp.Closing{ReplyCode: e.Code, ReplyText: e.Text, ClassID: e.Class, MethodID: e.Method}}
}

// startClosing gives back what the client holds at once and waits for close-ok.
func (c *connection) startClosing() {
	c.leave()
	c.phase, c.leaveBy = closing, time.Now().Add(closingTimeout)
	c.nc.SetReadDeadline(c.leaveBy)
}

// errEnd ends a connection without a word.
var errEnd = errors.New("server: connection ends")

// linger reads and forgets, so that the client gets to see connection.close
// before the socket goes.
func (c *connection) linger() error {
	_, err := io.Copy(io.Discard, io.LimitReader(c.nc, 1<<20))
	return err
}

// leave closes the channels and gives up the exclusive queues. Safe to repeat.
func (c *connection) leave() {
	for _, ch := range c.channels {
		ch.close()
	}
	c.srv.totals.channelsClosed.Add(uint64(len(c.channels)))
	c.listing.Lock()
	clear(c.channels)
	c.listing.Unlock()
	c.last = nil
	c.hide()
	if c.session != nil {
		c.vhost.Release(c)
		c.session.Close()
	}
}

// forceClose has the reader close the connection, for e. Safe to repeat, by any
// goroutine; it does not block.
func (c *connection) forceClose(e *amqp.Exception) {
	c.cancel(e)
	c.nc.SetReadDeadline(time.Unix(1, 0)) // the reader wakes
}

// cutOff ends the connection without a word, TLS's neither: that could block.
func (c *connection) cutOff() {
	if t, ok := c.nc.(*tls.Conn); ok {
		t.NetConn().Close()
		return
	}
	c.nc.Close()
}

// obey closes a connection that is forced to.
func (c *connection) obey() error {
	if c.phase == closing || c.ctx.Err() == nil {
		return nil
	}
	return c.fail(0, context.Cause(c.ctx))
}

// interrupted says whether a read ended only because of forceClose or remind.
func (c *connection) interrupted(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if c.ctx.Err() == nil {
		return c.isReminded()
	}
	if c.phase != closing {
		return true
	}
	left := time.Now().Before(c.leaveBy)
	if left {
		c.nc.SetReadDeadline(c.leaveBy)
	}
	return left
}

// extendDeadline ends a connection that was silent for two heartbeats. The
// deadline is set anew only after a quarter of one, not at every read.
func (c *connection) extendDeadline() {
	if c.heartbeat == 0 || c.phase != running {
		return
	}
	if now := time.Now(); now.Sub(c.readUntil) > c.heartbeat/4 {
		c.readUntil = now
		c.nc.SetReadDeadline(now.Add(2*c.heartbeat + c.heartbeat/4))
	}
}

func (c *connection) readError(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		switch c.phase {
		case running:
			return errors.New("server: missed heartbeats from client")
		case closing:
			return nil
		}
		return errors.New("server: handshake timeout")
	}
	return err
}
