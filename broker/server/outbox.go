package server

import (
	"net"
	"sync"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
	"curfew/broker/memory"
)

const (
	// outboxFull stops deliveries to the connection: its consumers wait until the writer
	// has swapped the buffer out.
	outboxFull = 512 << 10
	// outboxFree is the buffer size that every outbox may have. A larger buffer is drawn
	// from the budget of all clients. When the budget is used up, the outbox is full at
	// this size.
	outboxFree = 64 << 10
	// outboxChoked stops reading from the connection: a client that does not read its
	// confirms and replies gets no more of them.
	outboxChoked = 4 << 20
	// writeTimeout ends a connection whose client does not read a slice for this long.
	writeTimeout = 30 * time.Second
	writeSlice   = 256 << 10
	// replySize is the size that most methods fit in; settleSize is the size of one ack.
	replySize  = 512
	settleSize = 32
	// returnSize is what a returned message or a direct reply takes in addition to its names and
	// content.
	returnSize = 512
)

// outbox gathers the frames for one connection. Its writer swaps the buffer out and sends
// it in one write. The writer runs only while there is something to send, since an idle
// writer would take a third of the memory of an idle connection. mu is a leaf lock.
type outbox struct {
	mu             sync.Mutex
	buf            []byte // nil while there is nothing to send
	lastSize       int    // octets of the last buffer sent
	writer         func() // calls write; runs in its own goroutine
	writing        bool   // the writer runs
	sent           bool   // something was sent since the heartbeat timer last fired
	closing        bool   // send what is buffered, then end
	dead           bool   // nothing is sent any more
	starved        []*broker.Consumer
	drained        sync.Cond
	heartbeatTimer *time.Timer   // nil: no heartbeats
	gone           chan struct{} // closed when dead

	account      *memory.Account // nil: none yet
	drawn        int64           // drawn from it for buf
	budgetUsedUp bool            // the budget was not enough for buf
}

func (o *outbox) init(writer func()) {
	o.writer, o.gone = writer, make(chan struct{})
	o.drained.L = &o.mu
}

// openAccount draws the buffer's memory from an account from now on.
func (o *outbox) openAccount(a *memory.Account) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.account = a
}

// fullLocked reports whether deliveries have to wait.
func (o *outbox) fullLocked() bool { return o.overLocked(outboxFull) || o.dead }

// overLocked reports whether most octets are waiting, or as many as there is memory for.
func (o *outbox) overLocked(most int) bool {
	return len(o.buf) >= most || o.budgetUsedUp && len(o.buf) >= outboxFree
}

// reserveLocked makes room for n octets before an append. n is an estimate: appending more
// is correct, but allocates.
func (o *outbox) reserveLocked(n int) {
	switch {
	case cap(o.buf)-len(o.buf) >= n:
		return
	case o.buf == nil:
		o.buf = newBuffer(max(n, o.lastSize))
	default:
		o.buf = grownBuffer(o.buf, n)
	}
	o.drawLocked()
}

// drawLocked draws the growth of the buffer from the account.
func (o *outbox) drawLocked() {
	more := int64(cap(o.buf)) - outboxFree - o.drawn
	if o.account == nil || more <= 0 || o.budgetUsedUp {
		return
	}
	if o.account.Try(more) {
		o.drawn += more
		return
	}
	o.budgetUsedUp = true
}

// flushLocked makes the writer send what is buffered. It is called after an append.
func (o *outbox) flushLocked() {
	if o.writing || o.dead {
		return
	}
	o.writing = true
	go o.writer()
}

// send appends one method.
func (o *outbox) send(channel uint16, m amqp.Method) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserveLocked(replySize)
	o.buf = amqp.AppendMethod(o.buf, channel, m)
	o.flushLocked()
}

// close ends the outbox once it has sent what is buffered.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.flushLocked()
}

// waitRoom blocks the reader while the client does not read what it is sent.
func (o *outbox) waitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.overLocked(outboxChoked) && !o.dead {
		o.drained.Wait()
	}
}

// swap takes the buffer out, with the amount drawn for it. more: the writer must continue.
func (o *outbox) swap() (out []byte, drawn int64, starved []*broker.Consumer, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead || len(o.buf) == 0 && len(o.starved) == 0 {
		o.writing = false
		return nil, 0, nil, false
	}
	out, o.buf, o.lastSize = o.buf, nil, len(o.buf)
	if o.budgetUsedUp {
		o.lastSize = 0
	}
	drawn, o.drawn, o.budgetUsedUp = o.drawn, 0, false
	starved, o.starved = o.starved, nil
	o.sent = o.sent || len(out) > 0
	o.drained.Broadcast()
	return out, drawn, starved, true
}

// ended reports whether everything that had to be sent has been sent.
func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing && !o.writing
}

// kill discards what has not been sent. It may be called again.
func (o *outbox) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		return
	}
	o.dead, o.buf = true, nil
	if o.heartbeatTimer != nil {
		o.heartbeatTimer.Stop()
	}
	close(o.gone)
	o.drained.Broadcast()
}

// write is the connection's writer. It ends when nothing is left to send, or when the
// socket fails.
func (o *outbox) write(nc net.Conn, count *traffic) error {
	for {
		out, drawn, starved, more := o.swap()
		if !more {
			return nil
		}
		for _, c := range starved {
			c.Wake()
		}
		if err := writeAll(nc, out, count); err != nil {
			return err
		}
		recycle(out)
		if drawn > 0 {
			o.account.Give(drawn)
		}
	}
}

// writeAll writes b in slices, so that a client that reads slowly but steadily is not
// mistaken for one that does not read.
func writeAll(nc net.Conn, b []byte, count *traffic) error {
	for len(b) > 0 {
		n := min(len(b), writeSlice)
		nc.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := nc.Write(b[:n]); err != nil {
			return err
		}
		count.written(n)
		b = b[n:]
	}
	return nil
}

// heartbeats sends a heartbeat when nothing else was sent for a quarter of the interval or
// longer, and at the latest after half of it (AMQP 0-9-1 §4.2.7). RabbitMQ sends them every
// half interval as well: some clients give up when they have received nothing for a whole
// one. It must be called only once.
func (o *outbox) heartbeats(interval time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.heartbeatTimer = time.AfterFunc(interval/4, func() { o.heartbeat(interval / 4) })
}

func (o *outbox) heartbeat(next time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		return
	}
	if !o.sent && len(o.buf) == 0 {
		o.buf = amqp.AppendHeartbeat(o.buf)
		o.flushLocked()
	}
	o.sent = false
	o.heartbeatTimer.Reset(next)
}
