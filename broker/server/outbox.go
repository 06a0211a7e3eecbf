package server

import (
	"net"
	"sync"
	"time"

	"curfew/broker"
	"curfew/broker/amqp"
)

const (
	// outboxFull stops deliveries to the connection: its consumers wait until
	// the writer has swapped the buffer out.
	outboxFull = 512 << 10
	// outboxChoked stops reading from the connection: a client that does not
	// take its confirms and replies gets no more of them.
	outboxChoked = 4 << 20
	// writeTimeout ends a connection whose client does not take a slice for so long.
	writeTimeout = 30 * time.Second
	writeSlice   = 256 << 10
	// replySize is what most methods fit in, and settleSize what each ack does.
	replySize  = 512
	settleSize = 32
)

// outbox gathers the frames for one connection; its writer swaps the buffer out
// and sends it in one write. mu is a leaf lock.
type outbox struct {
	mu      sync.Mutex
	buf     []byte // nil while there is nothing to send
	usual   int    // octets of the last buffer sent
	woken   bool   // wake was signalled since the last swap
	closing bool   // send what is there, then end
	dead    bool   // nothing is sent any more
	starved []*broker.Consumer
	drained sync.Cond
	wake    chan struct{}
	gone    chan struct{} // closed when dead
}

func (o *outbox) init() {
	o.wake, o.gone = make(chan struct{}, 1), make(chan struct{})
	o.drained.L = &o.mu
}

// full says that deliveries have to wait; called with mu held.
func (o *outbox) full() bool { return len(o.buf) >= outboxFull || o.dead }

// reserve makes room for n octets without the allocator; called with mu held
// before an append. What takes more is right as well.
func (o *outbox) reserve(n int) {
	switch {
	case cap(o.buf)-len(o.buf) >= n:
	case o.buf == nil:
		o.buf = newBuffer(max(n, o.usual))
	default:
		o.buf = roomier(o.buf, n)
	}
}

// flush wakes the writer; called with mu held after an append.
func (o *outbox) flush() {
	if o.woken {
		return
	}
	o.woken = true
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// send appends one method.
func (o *outbox) send(channel uint16, m amqp.Method) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reserve(replySize)
	o.buf = amqp.AppendMethod(o.buf, channel, m)
	o.flush()
}

// close lets the writer end once it has sent what is there.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	o.woken = false
	o.flush()
}

// waitRoom blocks the reader while the client does not take what it is sent.
func (o *outbox) waitRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.buf) > outboxChoked && !o.dead {
		o.drained.Wait()
	}
}

// swap takes the buffer out.
func (o *outbox) swap() (out []byte, starved []*broker.Consumer, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out, o.buf, o.usual = o.buf, nil, len(o.buf)
	starved, o.starved = o.starved, nil
	o.woken = false
	o.drained.Broadcast()
	return out, starved, o.closing
}

func (o *outbox) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead, o.buf = true, nil
	close(o.gone)
	o.drained.Broadcast()
}

// write is the connection's writer: it ends when the outbox was closed and is
// sent, or the socket fails. A heartbeat goes out when nothing else did for half
// its interval (AMQP 0-9-1 §4.2.7); interval comes when tuned, 0 for none.
func (o *outbox) write(nc net.Conn, interval <-chan time.Duration, count *traffic) error {
	defer o.kill()
	var tick <-chan time.Time
	quiet := false
	for {
		select {
		case <-o.wake:
		case d := <-interval:
			t := time.NewTicker(d / 2)
			defer t.Stop()
			tick = t.C
			continue
		case <-tick:
			if !quiet {
				quiet = true
				continue
			}
			o.heartbeat()
		}
		out, starved, last := o.swap()
		for _, c := range starved {
			c.Wake()
		}
		if len(out) > 0 {
			quiet = false
			if err := writeAll(nc, out, count); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		recycle(out)
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

func (o *outbox) heartbeat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.buf) == 0 {
		o.buf = amqp.AppendHeartbeat(o.buf)
	}
}
