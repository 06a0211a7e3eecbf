package broker

import (
	"sync/atomic"

	"curfew/broker/queue"
)

// deliveryMode says how a message was handed out.
type deliveryMode uint8

const (
	toConsumer deliveryMode = iota
	toConsumerNoAck
	toGet
	toGetNoAck

	deliveryModes = int(toGetNoAck) + 1
)

func modeOf(get, noAck bool) deliveryMode {
	m := toConsumer
	if get {
		m = toGet
	}
	if noAck {
		m++
	}
	return m
}

// QueueCounts are totals of one queue since it was declared or the broker
// started (RabbitMQ: message_stats).
type QueueCounts struct {
	Published      uint64 // entered by publishers; dead letters are not in it
	Delivered      uint64 // to consumers that settle
	DeliveredNoAck uint64
	Got            uint64 // by basic.get, to be settled
	GotNoAck       uint64
	GetEmpty       uint64 // basic.get that found nothing
	Acked          uint64
	Redelivered    uint64 // deliveries and gets of messages that had come back
	Journaled      uint64 // persistent messages entered, dead letters included
}

// add sums up queues.
func (c *QueueCounts) add(o *QueueCounts) {
	c.Published += o.Published
	c.Delivered += o.Delivered
	c.DeliveredNoAck += o.DeliveredNoAck
	c.Got += o.Got
	c.GotNoAck += o.GotNoAck
	c.GetEmpty += o.GetEmpty
	c.Acked += o.Acked
	c.Redelivered += o.Redelivered
	c.Journaled += o.Journaled
}

// AllDelivered is what went out in any way.
func (c *QueueCounts) AllDelivered() uint64 {
	return c.Delivered + c.DeliveredNoAck + c.Got + c.GotNoAck
}

// queueTally is where a queue counts: plain numbers under its lock, which is held
// anyway.
type queueTally struct {
	published, getEmpty, acked, redelivered, journaled uint64
	out                                                [deliveryModes]uint64
}

func (t *queueTally) counts() QueueCounts {
	return QueueCounts{
		Published: t.published, GetEmpty: t.getEmpty, Acked: t.acked, Redelivered: t.redelivered, Journaled: t.journaled,
		Delivered: t.out[toConsumer], DeliveredNoAck: t.out[toConsumerNoAck], Got: t.out[toGet], GotNoAck: t.out[toGetNoAck],
	}
}

// takenOut is what has left to consumers.
func (t *queueTally) takenOut() uint64 { return t.out[toConsumer] + t.out[toConsumerNoAck] }

// entered counts a message that came in.
func (t *queueTally) entered(m *queue.Message) {
	if m.Flags&queue.Died == 0 {
		t.published++
	}
	if m.Flags&queue.Durable != 0 {
		t.journaled++
	}
}

// exchangeTally is where an exchange's messages are counted: atomics that
// publishers add to once a batch.
type exchangeTally struct{ in, out atomic.Uint64 }

// MessageSizes are the upper bounds of the buckets in which bodies are counted,
// in bytes; one bucket more holds what is larger (RabbitMQ: message_size_bytes).
var MessageSizes = [...]int{100, 1e3, 1e4, 1e5, 1e6, 1e7, 5e7, 1e8}

const sizeBuckets = len(MessageSizes) + 1

func sizeBucket(n int) int {
	for i, most := range MessageSizes {
		if n <= most {
			return i
		}
	}
	return len(MessageSizes)
}

// sizeTally counts published bodies by size.
type sizeTally struct {
	buckets [sizeBuckets]atomic.Uint64
	bytes   atomic.Uint64
}

// publisherTally gathers what a publisher counts between two flushes, so that
// a message costs plain additions.
type publisherTally struct {
	published, unroutable uint64
	sizes                 [sizeBuckets]uint64
	bytes                 uint64
	topology              uint64
	name                  []byte // of the exchange below
	exchange              *exchangeTally
	in, out               uint64 // of that exchange
	known                 map[string]*exchangeTally
}

// add counts one message routed to so many queues. Its exchange exists.
func (t *publisherTally) add(p *Publisher, m *Publication, queues int) {
	if t.exchange == nil || string(m.Exchange) != string(t.name) || t.topology != p.routes.topology {
		t.find(p, m.Exchange)
	}
	t.in++
	t.out += uint64(queues)
	t.published++
	if queues == 0 {
		t.unroutable++
	}
	t.sizes[sizeBucket(len(m.Body))]++
	t.bytes += uint64(len(m.Body))
}

// find turns to another exchange.
func (t *publisherTally) find(p *Publisher, name []byte) {
	t.leaveExchange()
	if t.topology != p.routes.topology {
		t.topology, t.known = p.routes.topology, nil
	}
	t.name = append(t.name[:0], name...)
	if len(name) == 0 {
		t.exchange = &p.vh.defaultExchange
		return
	}
	if t.known == nil {
		t.known = map[string]*exchangeTally{}
	}
	x, ok := t.known[string(name)]
	if !ok {
		x = p.vh.tallyOf(string(name))
		t.known[string(name)] = x
	}
	t.exchange = x
}

func (t *publisherTally) leaveExchange() {
	if t.in > 0 {
		t.exchange.in.Add(t.in)
		t.exchange.out.Add(t.out)
		t.in, t.out = 0, 0
	}
}

// flush hands the numbers over to the broker.
func (t *publisherTally) flush(b *Broker) {
	if t.published == 0 {
		return
	}
	t.leaveExchange()
	b.counters.published.Add(t.published)
	if t.unroutable > 0 {
		b.counters.unroutable.Add(t.unroutable)
	}
	b.counters.sizes.bytes.Add(t.bytes)
	for i, n := range t.sizes {
		if n > 0 {
			b.counters.sizes.buckets[i].Add(n)
		}
	}
	t.forget()
}

// forget drops what was gathered since the last flush.
func (t *publisherTally) forget() {
	t.in, t.out = 0, 0
	t.published, t.unroutable, t.bytes, t.sizes = 0, 0, 0, [sizeBuckets]uint64{}
}

// tallyOf returns the tally of a declared exchange; one that has gone meanwhile gets one
// that nobody reads.
func (vh *VHost) tallyOf(name string) *exchangeTally {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	if x, ok := vh.exchanges[name]; ok {
		return &x.tally
	}
	return new(exchangeTally)
}

// Totals are the broker's since its start; they never fall, whatever is deleted.
type Totals struct {
	Queues     QueueCounts // over all queues, deleted ones included
	Published  uint64      // unroutable ones included
	Unroutable uint64
	BodyBytes  uint64              // of what was published
	Sizes      [sizeBuckets]uint64 // publishes by body size: see MessageSizes

	QueuesDeclared, QueuesCreated, QueuesDeleted uint64

	// DeadLettered is by reason; ExpiredDropped expired without a dead-letter
	// exchange.
	DeadLettered   [queue.Reasons]uint64
	ExpiredDropped uint64
}

// Totals sums up. It visits every queue.
func (b *Broker) Totals() Totals {
	c := &b.counters
	t := Totals{
		Published: c.published.Load(), Unroutable: c.unroutable.Load(), BodyBytes: c.sizes.bytes.Load(),
		QueuesDeclared: c.queuesDeclared.Load(), QueuesCreated: c.queuesCreated.Load(), QueuesDeleted: c.queuesDeleted.Load(),
		ExpiredDropped: c.expiredDropped.Load(), Queues: b.queueCounts(),
	}
	for i := range t.Sizes {
		t.Sizes[i] = c.sizes.buckets[i].Load()
	}
	for i := range t.DeadLettered {
		t.DeadLettered[i] = c.deadLettered[i].Load()
	}
	return t
}

// queueCounts sums the queues that are there and those that were.
func (b *Broker) queueCounts() QueueCounts {
	b.mu.RLock()
	sum := b.retired
	all := b.declaredQueues()
	b.mu.RUnlock()
	for _, q := range all {
		c := q.Counters()
		sum.add(&c)
	}
	return sum
}

// Counters returns the queue's totals.
func (q *Queue) Counters() QueueCounts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tally.counts()
}
