package deliveries

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"curfew/broker"
	"curfew/broker/memory"
)

const (
	// full stops deliveries to the connection: its consumers wait until the writer has
	// swapped the buffer out.
	full = 512 << 10
	// free is the buffer size that every outbox may have. A larger buffer is drawn from the
	// budget of all clients. When the budget is used up, the outbox is full at this size.
	free = 64 << 10
	// choked stops reading from the connection: a client that does not read its confirms and
	// replies gets no more of them.
	choked = 4 << 20
	// replyBacklog is how many octets may wait for a direct reply to be added, if the budget
	// of all clients allows that. Beyond it replies are lost, as they are when the channel is
	// gone: they are not stored, and their publishers do not wait.
	replyBacklog = 16 << 20
	// writeTimeout ends a connection whose client does not read a slice for this long.
	writeTimeout = 30 * time.Second
	writeSlice   = 256 << 10
	// methodSize is the size that most methods fit in; settleSize is the size of one ack.
	methodSize = 512
	settleSize = 32
	// returnSize is what a returned message or a direct reply takes in addition to its names
	// and content.
	returnSize = 512
)

// Outbox gathers the frames for one connection. Its writer swaps the buffer out and sends
// it in one write. The writer runs only while there is something to send, since an idle
// writer would take a third of the memory of an idle connection.
//
// Its lock is a leaf. A caller who decides something together with what it sends holds the
// lock (Lock) and calls the functions that end in Locked; all others take it themselves.
// Any goroutine may call them.
type Outbox struct {
	sync.Mutex
	before         [][]byte // filled, to be sent before buf
	buf            []byte   // nil while there is nothing to send
	lastSize       int      // octets sent last, of at most one buffer
	writer         func()   // calls Write; runs in its own goroutine
	frameMax       uint32   // of content frames, with overhead
	writing        bool     // the writer runs
	sent           bool     // something was sent since the heartbeat timer last fired
	closing        bool     // send what is buffered, then end
	Dead           bool     // with the lock: the socket is closed or has failed, and nothing more is sent
	stopped        bool     // nothing more is delivered
	budgetUsedUp   bool     // the budget was not enough for the buffers
	waiting        []*broker.Consumer
	drained        sync.Cond
	heartbeatTimer *time.Timer // nil: no heartbeats
	heartbeatFrame []byte
	Gone           chan struct{} // closed when nothing more is sent

	account *memory.Account // nil: none yet
	drawn   int64           // drawn from it for the buffers

	Writes, Octets atomic.Uint64 // written to the socket
}

// Init prepares an outbox. writer is run in a goroutine of its own when there is something to
// send; it must call Write.
func (o *Outbox) Init(writer func()) {
	o.writer, o.Gone = writer, make(chan struct{})
	o.drained.L = &o.Mutex
}

// SetFrameMax sets the size that content is split at from now on, in octets.
func (o *Outbox) SetFrameMax(octets uint32) {
	o.Lock()
	defer o.Unlock()
	o.frameMax = octets
}

// OpenAccount draws the buffer's memory from an account from now on.
func (o *Outbox) OpenAccount(a *memory.Account) {
	o.Lock()
	defer o.Unlock()
	o.account = a
}

// RoomLocked reports whether one more message may be delivered now. A full outbox remembers
// the consumer and wakes it when the buffer has been swapped out.
func (o *Outbox) RoomLocked(c *broker.Consumer) bool {
	switch {
	case o.stopped:
		return false
	case o.overLocked(full), o.Dead:
		o.waiting = append(o.waiting, c)
		return false
	}
	return true
}

// overLocked reports whether most octets are waiting, or as many as there is memory for.
func (o *Outbox) overLocked(most int) bool {
	size := o.sizeLocked()
	return size >= most || o.budgetUsedUp && size >= free
}

// sizeLocked is how many octets are waiting.
func (o *Outbox) sizeLocked() int {
	size := len(o.buf)
	for _, b := range o.before {
		size += len(b)
	}
	return size
}

// reserveLocked makes room for n octets before an append. n is an estimate: appending more
// is correct, but allocates. Above 1 MiB there is another buffer: nothing can preempt a copy,
// and while one of several MiB brings in new pages, the whole process may wait for it.
func (o *Outbox) reserveLocked(n int) {
	switch {
	case cap(o.buf)-len(o.buf) >= n:
		return
	case o.buf == nil:
		o.buf = NewBuffer(max(n, o.lastSize))
	case len(o.buf)+n > size1M:
		o.before, o.buf = append(o.before, o.buf), NewBuffer(n)
	default:
		o.buf = grown(o.buf, n)
	}
	o.drawLocked()
}

// drawLocked draws the growth of the buffers from the account.
func (o *Outbox) drawLocked() {
	more := int64(cap(o.buf)) - free - o.drawn
	for _, b := range o.before {
		more += int64(cap(b))
	}
	if o.account == nil || more <= 0 || o.budgetUsedUp {
		return
	}
	if o.account.Try(more) {
		o.drawn += more
		return
	}
	o.budgetUsedUp = true
}

// FlushLocked makes the writer send what is buffered. It is called after DeliverLocked.
func (o *Outbox) FlushLocked() {
	if o.writing || o.Dead {
		return
	}
	o.writing = true
	go o.writer()
}

// Close ends the outbox once it has sent what is buffered.
func (o *Outbox) Close() {
	o.Lock()
	defer o.Unlock()
	o.closing = true
	o.FlushLocked()
}

// StopDeliveries makes RoomLocked false from now on.
func (o *Outbox) StopDeliveries() {
	o.Lock()
	defer o.Unlock()
	o.stopped = true
}

// WaitRoom blocks the reader while the client does not read what it is sent.
func (o *Outbox) WaitRoom() {
	o.Lock()
	defer o.Unlock()
	for o.overLocked(choked) && !o.Dead {
		o.drained.Wait()
	}
}

// taken is what the writer takes out of an outbox.
type taken struct {
	before  [][]byte
	buf     []byte
	drawn   int64 // for both
	waiting []*broker.Consumer
}

// swap takes out what is to be written. more: there is something, and the writer must continue.
func (o *Outbox) swap() (t taken, more bool) {
	o.Lock()
	defer o.Unlock()
	size := o.sizeLocked()
	if o.Dead || size == 0 && len(o.waiting) == 0 {
		o.writing = false
		return taken{}, false
	}
	t = taken{o.before, o.buf, o.drawn, o.waiting}
	o.before, o.buf, o.drawn, o.waiting = nil, nil, 0, nil
	o.lastSize = min(size, size1M)
	if o.budgetUsedUp {
		o.lastSize = 0
	}
	o.budgetUsedUp = false
	o.sent = o.sent || size > 0
	o.drained.Broadcast()
	return t, true
}

// Ended reports whether everything that had to be sent has been sent.
func (o *Outbox) Ended() bool {
	o.Lock()
	defer o.Unlock()
	return o.closing && !o.writing
}

// Kill discards what has not been sent. It may be called again.
func (o *Outbox) Kill() {
	o.Lock()
	defer o.Unlock()
	if o.Dead {
		return
	}
	o.Dead, o.before, o.buf = true, nil, nil
	if o.heartbeatTimer != nil {
		o.heartbeatTimer.Stop()
	}
	close(o.Gone)
	o.drained.Broadcast()
}

// Write is the writer. It ends when nothing is left to send, or when the socket fails.
func (o *Outbox) Write(nc net.Conn) error {
	for {
		t, more := o.swap()
		if !more {
			return nil
		}
		for _, c := range t.waiting {
			c.Wake()
		}
		for _, b := range t.before {
			if err := o.writeAll(nc, b); err != nil {
				return err
			}
		}
		if err := o.writeAll(nc, t.buf); err != nil {
			return err
		}
		if t.drawn > 0 {
			o.account.Give(t.drawn)
		}
	}
}

// writeAll writes a buffer in slices, so that a client that reads slowly but steadily is not
// mistaken for one that does not read, and gives it back.
func (o *Outbox) writeAll(nc net.Conn, b []byte) error {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), writeSlice)
		nc.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := nc.Write(rest[:n]); err != nil {
			return err
		}
		o.Writes.Add(1)
		o.Octets.Add(uint64(n))
		rest = rest[n:]
	}
	RecycleBuffer(b)
	return nil
}

// Pending returns how many octets wait to be written.
func (o *Outbox) Pending() int {
	o.Lock()
	defer o.Unlock()
	return o.sizeLocked()
}

// Heartbeats sends a heartbeat, which is the given frame, when nothing else was sent for a quarter of the interval or
// longer, and at the latest after half of it (AMQP 0-9-1 §4.2.7). RabbitMQ sends them every
// half interval as well: some clients give up when they have received nothing for a whole
// one. It must be called only once.
func (o *Outbox) Heartbeats(interval time.Duration, frame []byte) {
	o.Lock()
	defer o.Unlock()
	o.heartbeatFrame = frame
	o.heartbeatTimer = time.AfterFunc(interval/4, func() { o.heartbeat(interval / 4) })
}

func (o *Outbox) heartbeat(next time.Duration) {
	o.Lock()
	defer o.Unlock()
	if o.Dead {
		return
	}
	if !o.sent && o.sizeLocked() == 0 {
		o.buf = append(o.buf, o.heartbeatFrame...)
		o.FlushLocked()
	}
	o.sent = false
	o.heartbeatTimer.Reset(next)
}
