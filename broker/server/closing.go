package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"time"

	"go.uber.org/zap"

	"curfew/broker/amqp"
)

// errEnd ends a connection without a word.
var errEnd = errors.New("server: connection ends")

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
	c.phase, c.leaveBy = closing, time.Now().Add(closeGrace)
	c.nc.SetReadDeadline(c.leaveBy)
}

// whileClosing waits for close-ok. A client may close more than once, each goroutine on its
// own, or at the moment it is closed itself: each close is answered, and the stream is read
// until the client ends it or its time is over. What it has sent by then must not be left
// unread, since the system would reset the connection for that before the client has its answers.
func (c *connection) whileClosing(f amqp.Frame) error {
	if f.Type != amqp.FrameMethod || f.Channel != 0 {
		return nil
	}
	switch id, _ := amqp.PeekMethod(f.Payload); id {
	case amqp.ConnectionCloseOkID:
		c.ended = true
	case amqp.ConnectionCloseID:
		c.out.send(0, &amqp.ConnectionCloseOk{})
	}
	return nil
}

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
	c.closeAccount()
	c.hide()
	if c.session != nil {
		c.rights.Pace(false)
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

// cutOff ends the connection without a word, TLS's neither: that could block.
func (c *connection) cutOff() {
	if t, ok := c.nc.(*tls.Conn); ok {
		t.NetConn().Close()
		return
	}
	c.nc.Close()
}
