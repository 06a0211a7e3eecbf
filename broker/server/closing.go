package server

import (
	"context"
	"errors"
	"io"
	"time"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/server/internal/convert"
)

// ClientError is why links, channels or connections of a client are closed.
type ClientError struct {
	Client, User, VHost string // of the client, which is described for people
	amqp.Exception
}

// errEnd ends a connection without an answer.
var errEnd = errors.New("server: connection ends")

// fail answers an error: a soft exception, or a mistake in a session of AMQP 1.0, closes channel id, any
// other error the connection, but for errOverdue, whose channel is closed. A non-nil result ends the connection at once.
func (c *connection) fail(id uint16, err error) error {
	var e *amqp.Exception
	if !errors.As(err, &e) {
		if errors.Is(err, errOverdue) {
			return nil
		}
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
	if c.phase == running && e.Code != amqp.ConnectionForced {
		c.countError(e)
	}
	if ch := c.channels.open[id]; ch != nil && (!e.Hard() || ch.ten != nil && convert.OfSession(e)) {
		c.log.Info("channel closed", zap.Uint16("channel", id), zap.String("reason", e.Text))
		ch.closeWith(e)
		return nil
	}
	if c.phase == closing {
		return nil
	}
	if e != errShutdown { // which all clients are told
		c.log.Warn("connection closed", zap.String("reason", e.Text))
	}
	sendClose(c, e)
	c.startClosing()
	return nil
}

// countError counts what closes a link, a channel or the connection by the client's own doing.
func (c *connection) countError(e *amqp.Exception) {
	c.srv.Errors.Add(ClientError{c.client(), c.userName, c.user.VHost.Name(), *e}, time.Now())
}

// sendClose tells the client why the connection ends.
func sendClose(c *connection, e *amqp.Exception) {
	if c.ten != nil {
		c.ten.sendClose(e)
		return
	}
	c.out.Send(0, &amqp.ConnectionClose{Closing: amqp.Closing{ReplyCode: e.Code, ReplyText: e.Text, ClassID: e.Class, MethodID: e.Method}})
}

// startClosing releases at once what the client holds, and waits for close-ok.
func (c *connection) startClosing() {
	c.releaseAll()
	c.phase = closing
	c.deadline.leave(closeGrace)
}

// whileClosing waits for close-ok. A client may send close more than once, from several
// goroutines or at the moment it is closed itself. Each close is answered, and the stream
// is read until the client ends it or its time is over. Anything left unread would make the
// operating system reset the connection before the client has its answers.
func (c *connection) whileClosing(f amqp.Frame) error {
	if f.Type != amqp.FrameMethod || f.Channel != 0 {
		return nil
	}
	switch id, _ := amqp.PeekMethod(f.Payload); id {
	case amqp.ConnectionCloseOkID:
		c.ended = true
	case amqp.ConnectionCloseID:
		c.out.Send(0, &amqp.ConnectionCloseOk{})
	}
	return nil
}

// linger reads and discards, so that the client sees connection.close before the socket is
// closed.
func (c *connection) linger() error {
	_, err := io.Copy(io.Discard, io.LimitReader(c.nc, 1<<20))
	return err
}

// releaseAll closes the channels and deletes the exclusive queues. It may be called again.
func (c *connection) releaseAll() {
	for _, ch := range c.channels.list() {
		ch.close()
	}
	c.srv.Totals.ChannelsClosed.Add(uint64(c.channels.clear()))
	c.usage.Close()
	if c.identity.Swap(nil) != nil { // it was among those that List returns
		c.srv.Totals.ConnectionsClosed.Add(1)
	}
	if c.session != nil {
		c.user.Rights.Pace(false)
		c.user.VHost.Queues.Release(c)
		c.session.Close()
	}
}

// forceClose makes the reader close the connection because of e. Any goroutine may call it,
// more than once; it does not block.
func (c *connection) forceClose(e *amqp.Exception) {
	c.cancel(e)
	c.deadline.wake()
}

// closeForced closes a connection because of forceClose.
func (c *connection) closeForced() error {
	if c.phase == closing || c.ctx.Err() == nil {
		return nil
	}
	return c.fail(0, context.Cause(c.ctx))
}
