package server

import (
	"errors"
	"net"
	"runtime"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/server/internal/deliveries"
)

const (
	readBufferMin  = 512                 // while idle
	readBufferMore = deliveries.Size4K   // when a read fills it
	readBufferBusy = deliveries.Size64K  // when a read fills that, too: a steady stream
	readBufferMax  = deliveries.Size256K // for the largest frames
)

// read is the reader. It parses the frames that have arrived in place, then makes the
// gathered publishes and settlements enter their queues, then reads on.
func (c *connection) read() error {
	if err := c.handshake.begin(); err != nil {
		return err
	}
	own := make([]byte, readBufferMin)
	buf, from, to := own, 0, 0
	for !c.ended {
		if to == len(buf) {
			buf, from, to = makeRoom(buf, from, to)
		}
		if err := c.beforeRead(); err != nil {
			return err
		}
		n, err := c.nc.Read(buf[to:])
		if n == 0 && err != nil { // TLS returns the last octets together with the end, and repeats the end
			c.flush()
			if c.deadline.interrupted(err, c.ctx.Err() != nil) {
				continue
			}
			return c.readError(err)
		}
		c.reads.Add(1)
		c.received.Add(uint64(n))
		to += n
		if c.phase == running && c.user.Rights.Pacing.Behind { // publishes wait for a turn, which the next flush ends
			c.user.Rights.BeginTurn(false, c.ctx.Done())
		}
		used, err := c.frames(buf[from:to])
		c.flush()
		if err != nil {
			return err
		}
		from += used
		if from == to {
			from, to = 0, 0
			if len(buf) > readBufferMin { // the next read may take a long time
				deliveries.RecycleBuffer(buf)
				buf = own
			}
		}
		if err := c.accountForRead(); err != nil {
			return err
		}
		if n >= readBufferMore { // more has arrived; let other goroutines run, not only after a time slice of 10 ms
			runtime.Gosched()
		}
		c.out.WaitRoom()
		c.awaitOthers()
		if err := c.blockPublishers(); err != nil {
			return err
		}
	}
	return nil
}

// accountForRead draws from the budget of all clients what the last read has made the connection hold in addition, or gives back what
// it no longer uses. An error is 506, which closes the connection.
func (c *connection) accountForRead() error {
	if c.phase != running {
		return nil
	}
	if err := c.usage.Update(maxUsedBytes + int64(c.srv.opts.Broker.MaxMessageBytes())); err != nil {
		return c.fail(0, err)
	}
	return nil
}

// beforeRead does what has become due since the last read.
func (c *connection) beforeRead() error {
	c.deadline.extend()
	if err := c.closeForced(); err != nil {
		return err
	}
	return c.closeOverdue()
}

// blockPublishers waits while publishers are blocked, if anything was published.
func (c *connection) blockPublishers() error {
	if !c.published {
		return nil
	}
	c.published = false
	if err := c.waitWhileBlocked(); err != nil {
		return c.fail(0, err)
	}
	return nil
}

// makeRoom makes room to read more after the buffer was filled to its end. More is waiting
// than the buffer holds, so the buffer grows. Beyond readBufferBusy it grows only for a
// frame that takes more than half of it. Frames are bounded, so the buffer is bounded too.
// makeRoom gives the old buffer back.
func makeRoom(buf []byte, from, to int) ([]byte, int, int) {
	size := len(buf)
	switch {
	case size < readBufferMore:
		size = readBufferMore
	case size < readBufferBusy:
		size = readBufferBusy
	case size < readBufferMax && from < size/2:
		size *= 2
	}
	if size == len(buf) {
		return buf, 0, copy(buf, buf[from:to])
	}
	grown := deliveries.NewBuffer(size)
	grown = grown[:cap(grown)]
	n := copy(grown, buf[from:to])
	if len(buf) > readBufferMin {
		deliveries.RecycleBuffer(buf)
	}
	return grown, 0, n
}

// frames handles the complete frames in b and returns how many octets they took.
func (c *connection) frames(b []byte) (used int, err error) {
	if c.ten != nil {
		return c.ten.frames(b)
	}
	return c.eachFrame(b, func(b []byte) (n int, id uint16, err error) {
		f, n, err := amqp.ParseFrame(b, c.frameMax)
		if err == nil && n > 0 {
			err = c.frame(f)
		}
		return n, f.Channel, err
	})
}

// eachFrame has next handle one frame after the other, as long as there is a whole one. next returns its length, and the channel
// whose mistake an error is; an error without a length is about the stream, which cannot be parsed any further.
func (c *connection) eachFrame(b []byte, next func(b []byte) (n int, id uint16, err error)) (used int, err error) {
	for !c.ended {
		n, id, err := next(b[used:])
		if err == nil && n == 0 {
			return used, nil
		}
		if err != nil {
			if err := c.fail(id, err); err != nil {
				return used, err
			}
			if n == 0 {
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

// connectionMethod handles a frame on channel 0.
func (c *connection) connectionMethod(f amqp.Frame) error {
	if f.Type != amqp.FrameMethod {
		return amqp.NewException(amqp.UnexpectedFrame, 0, 0, "content frame on channel 0")
	}
	id, err := amqp.PeekMethod(f.Payload)
	if err != nil {
		return err
	}
	if id.Class() != amqp.ClassConnection {
		return amqp.NewException(amqp.CommandInvalid, id.Class(), id.Method(), "method %s on channel 0", id)
	}
	m, err := amqp.ParseMethod(f.Payload, c.tables)
	if err != nil {
		return err
	}
	switch m := m.(type) {
	case *amqp.ConnectionStartOk:
		if c.phase == awaitStartOk {
			return c.handshake.login(m)
		}
	case *amqp.ConnectionTuneOk:
		if c.phase == awaitTuneOk {
			return c.handshake.tune(m)
		}
	case *amqp.ConnectionOpen:
		if c.phase == awaitOpen {
			return c.handshake.open(m)
		}
	case *amqp.ConnectionUpdateSecret:
		if c.phase == running {
			// A new credential: passwords are verified only at login, so any is accepted and none changes anything, as with RabbitMQ's internal users.
			c.log.Debug("secret updated", zap.String("user", c.userName), zap.String("reason", m.Reason))
			c.out.Send(0, &amqp.ConnectionUpdateSecretOk{})
			return nil
		}
	case *amqp.ConnectionClose:
		c.flush()
		c.startClosing() // the client closes the socket: many clients take an end of the stream before close-ok for an error
		c.out.Send(0, &amqp.ConnectionCloseOk{})
		return nil
	case *amqp.ConnectionCloseOk:
		c.ended = true
		return nil
	}
	return amqp.NewException(amqp.CommandInvalid, id.Class(), id.Method(), "unexpected method %s", id)
}

func (c *connection) readError(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		switch c.phase {
		case running:
			if c.ten != nil { // AMQP 1.0 §2.4.5
				c.ten.sendClose(amqp.NewException(amqp.ResourceError, 0, 0, "nothing was received for %s", silence(c.deadline.heartbeat)))
			}
			return errMissedHeartbeats
		case closing:
			return nil
		}
		return errors.New("server: handshake timeout")
	}
	return err
}
