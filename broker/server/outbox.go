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
	// outboxFull stops deliveries to the connection: its consumers wait until
	// the writer has swapped the buffer out.
	outboxFull = 512 << 10
	// outboxFree is the buffer that an outbox may have without asking: a larger one is
	// drawn from the budget of all clients. While there is nothing left of that this is
	// where it is full.
	outboxFree = 64 << 10
	// outboxChoked stops reading from the connection: a client that does not
	// take its confirms and replies gets no more of them.
	outboxChoked = 4 << 20
	// writeTimeout ends a connection whose client does not take a slice for so long.
	writeTimeout = 30 * time.Second
	writeSlice   = 256 << 10
	// replySize is what most methods fit in, and settleSize what each ack does.
	replySize  = 512
	settleSize = 32
	// returnSize is what a returned message or a direct reply takes beside its names and content.
	returnSize = 512
)

// outbox gathers the frames for one connection; its writer swaps the buffer out
// and sends it in one write. The writer runs while there is something to send, since an
// idle one would be a third of what an idle connection takes. mu is a leaf lock.
type outbox struct {
	mu      sync.Mutex
	buf     []byte // nil while there is nothing to send
	usual   int    // octets of the last buffer sent
	writer  func() // calls write, in a goroutine of its own
	writing bool   // it runs
	sent    bool   // anything, since the heartbeat's timer fired last
	closing bool   // send what is there, then end
	dead    bool   // nothing is sent any more
	starved []*broker.Consumer
	drained sync.Cond
	beat    *time.Timer   // nil: no heartbeats
	gone    chan struct{} // closed when dead

	account *memory.Account // nil: none yet
	drawn   int64           // from it, for buf
	tight   bool            // there was not enough for buf
}

func (o *outbox) init(writer func()) {
	o.writer, o.gone = writer, make(chan struct{})
	o.drained.L = &o.mu
}

// openAccount has the buffer drawn from an account from now on.
func (o *outbox) openAccount(a *memory.Account) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.account = a
}

// full says that deliveries have to wait; called with mu held.
func (o *outbox) full() bool { return o.over(outboxFull) || o.dead }

// over says whether as much waits as may, or as there is memory for; called with mu held.
func (o *outbox) over(most int) bool {
	return len(o.buf) >= most || o.tight && len(o.buf) >= outboxFree
}

// reserve makes room for n octets without the allocator; called with mu held
// before an append. What takes more is right as well.
func (o *outbox) reserve(n int) {
	switch {
	case cap(o.buf)-len(o.buf) >= n:
		return
	case o.buf == nil:
		o.buf = newBuffer(max(n, o.usual))
	default:
		o.buf = roomier(o.buf, n)
	}
	o.draw()
}

// draw takes what the buffer is larger than before from the account; called with mu held.
func (o *outbox) draw() {
	more := int64(cap(o.buf)) - outboxFree - o.drawn
	if o.account == nil || more <= 0 || o.tight {
		return
	}
	if o.account.Try(more) {
		o.drawn += more
		return
	}
	o.tight = true
}

// flush has the writer send what is there; called with mu held after an append.
func (o *outbox) flush() {
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
	o.reserve(replySize)
	o.buf = amqp.AppendMethod(o.buf, channel, m)
	o.flush()
}

// close lets the outbox end once it has sent what is there.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.flush()
}

// waitRoom blocks the reader while the client does not take what it is sent.
func (o *outbox) waitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.over(outboxChoked) && !o.dead {
		o.drained.Wait()
	}
}

// swap takes the buffer out, and what was drawn for it. more: the writer is to go on.
func (o *outbox) swap() (out []byte, drawn int64, starved []*broker.Consumer, more bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead || len(o.buf) == 0 && len(o.starved) == 0 {
		o.writing = false
		return nil, 0, nil, false
	}
	out, o.buf, o.usual = o.buf, nil, len(o.buf)
	if o.tight {
		o.usual = 0
	}
	drawn, o.drawn, o.tight = o.drawn, 0, false
	starved, o.starved = o.starved, nil
	o.sent = o.sent || len(out) > 0
	o.drained.Broadcast()
	return out, drawn, starved, true
}

// ended says whether all is sent that was to be.
func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closing && !o.writing
}

// kill gives up what is not sent. Safe to repeat.
func (o *outbox) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		return
	}
	o.dead, o.buf = true, nil
	if o.beat != nil {
		o.beat.Stop()
	}
	close(o.gone)
	o.drained.Broadcast()
}

// write is the connection's writer: it ends when nothing is left to send, or the
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

// writeAll writes b in slices, so that a client that takes it slowly but steadily
// is not taken for one that takes nothing.
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

// heartbeats has one sent when nothing else was for a quarter of the interval or more, at
// the latest after half of it (AMQP 0-9-1 §4.2.7). RabbitMQ sends them every half interval as
// well: some clients give up when they have read nothing for a whole one. To be called once.
func (o *outbox) heartbeats(interval time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beat = time.AfterFunc(interval/4, func() { o.heartbeat(interval / 4) })
}

func (o *outbox) heartbeat(next time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dead {
		return
	}
	if !o.sent && len(o.buf) == 0 {
		o.buf = amqp.AppendHeartbeat(o.buf)
		o.flush()
	}
	o.sent = false
	o.beat.Reset(next)
}
