package deliveries

import (
	"sync"

	"curfew/broker"
	"curfew/broker/queue"
)

// Deliveries is what one channel delivers. It must be initialized by Init. It implements
// broker.LockHolder for what basic.get has taken.
//
// Functions that say so belong to the connection's reader; any goroutine may call the others.
// Lock order: a queue's lock, then mu, then the outbox's.
type Deliveries struct {
	out          *Outbox
	usage        *Memory // of the connection; the consumers are counted in it
	channel      uint16
	notifyCancel bool // the client supports basic.cancel
	client       func() string

	// KeepLocks leaves what a client gives up without settling it to its locks, as Service Bus does, instead of returning it at once. A delivery
	// whose lock has lapsed is forgotten, since its client may never settle it. It is set before the first delivery.
	KeepLocks bool

	// The reader's:
	tags    uint32    // consumer tags generated so far
	ended   []Unacked // scratch space of end
	refused bool      // consumers waited for the shared prefetch after the last step of a settlement

	mu        sync.Mutex
	closed    bool
	prefetch  uint16 // of consumers started from now on; 0: no limit
	consumers map[string]*Consumer
	unacked   ring
	shared    sharedPrefetch
	deferred  *deferrals // nil: none
	counts    broker.MessageStats
}

// Init prepares the deliveries of a channel. They are sent by out, and the memory that
// consumers take is added to u. client says whose they are.
func (d *Deliveries) Init(channel uint16, out *Outbox, u *Memory, notifyCancel bool, client func() string) {
	d.channel, d.out, d.usage, d.notifyCancel, d.client = channel, out, u, notifyCancel, client
	d.consumers = map[string]*Consumer{}
}

// SetPrefetch sets the limit of all consumers together (global), or of the consumers started
// later (RabbitMQ: Consumer Prefetch). Setting the latter removes the shared limit, as in
// RabbitMQ. ServeLine must follow. The reader's.
func (d *Deliveries) SetPrefetch(limit uint16, global bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shared.limit = 0
	if global {
		d.shared.limit = int(limit)
	} else {
		d.prefetch = limit
	}
}

// Get takes a message of the queue (basic.get) and sends it; false: there is none. Errors are
// those of broker.Queue.Messages.Get. The reader's.
func (d *Deliveries) Get(q *broker.Queue, noAck bool) (bool, error) {
	got, err := q.Messages.Get(noAck, func(m *broker.Delivery) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.counts.Count(true, noAck, m.Redelivered)
		m.LockHolder = d
		var tag uint64
		if noAck {
			tag = d.unacked.skip()
		} else {
			tag = d.unacked.add(Unacked{Queue: q, Seq: m.Seq, At: m.At, locked: m.Locked})
		}
		d.out.SendGot(d.channel, tag, m)
	})
	if got {
		q.NoteConsumed()
	} else if err == nil {
		d.mu.Lock()
		d.counts.GetEmpty++
		d.mu.Unlock()
	}
	return got, err
}

// Reply sends a direct reply to the consumer with a tag. lost: too much was waiting to be sent.
func (d *Deliveries) Reply(consumer string, m *broker.Publication) (lost bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.out.Lock()
	defer d.out.Unlock()
	if d.closed || d.out.Dead {
		return false
	}
	if d.out.overLocked(replyBacklog) {
		return true
	}
	d.out.ReplyLocked(d.channel, consumer, d.unacked.skip(), m)
	return false
}

// Lapsed implements broker.LockHolder.
func (d *Deliveries) Lapsed(id uint64, seq queue.Seq) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	key := lockKey{id, seq}
	tag, lapsed := d.unacked.lapse(key)
	if lapsed && d.KeepLocks {
		m, _ := d.unacked.take(tag)
		d.giveCreditLocked(m)
	}
	return lapsed || d.lapseDeferredLocked(key)
}

// Close ends the consumers and returns the unacked messages. The messages come first, so that
// the next consumers of a queue get its messages in order. Nothing is delivered after that. It
// may be called again. The reader's.
func (d *Deliveries) Close(b *Batch) {
	d.mu.Lock()
	d.closed = true
	consumers := d.consumers
	d.consumers, d.shared.line = nil, nil
	d.mu.Unlock()
	d.ReturnAll(b)
	for _, c := range consumers {
		d.usage.Add(-c.bytes())
		c.Cancel()
	}
}

// Info describes the deliveries of a channel.
type Info struct {
	Prefetch       int // of consumers started from now on; 0: none
	GlobalPrefetch int // over all consumers; 0: none
	Unacked        int
	Stats          broker.MessageStats
	Consumers      []*Consumer // in no order
}

// Info returns what there is of deliveries.
func (d *Deliveries) Info() Info {
	d.mu.Lock()
	defer d.mu.Unlock()
	info := Info{Prefetch: int(d.prefetch), GlobalPrefetch: d.shared.limit, Unacked: d.unacked.count, Stats: d.counts}
	for _, c := range d.consumers {
		info.Consumers = append(info.Consumers, c)
	}
	return info
}

// Consumers returns how many consumers the channel has.
func (d *Deliveries) Consumers() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.consumers)
}
