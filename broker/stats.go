package broker

import (
	"os"
	"sync/atomic"

	"curfew/broker/internal/topology"
	"curfew/broker/memory"
	"curfew/broker/queue"
)

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

// sizeCounters counts published bodies by size.
type sizeCounters struct {
	buckets [sizeBuckets]atomic.Uint64
	bytes   atomic.Uint64
}

// publisherCounts gathers what a publisher counts between two flushes, so that
// a message costs plain additions.
type publisherCounts struct {
	published, unroutable uint64
	sizes                 [sizeBuckets]uint64
	bytes                 uint64
	exchange              *topology.ExchangeStats
	in, out, none         uint64 // of that exchange
}

// add counts one message that was routed to the given number of queues, right after its route was found.
func (t *publisherCounts) add(p *Publisher, m *Publication, queues int) {
	if t.exchange != p.routes.Stats {
		t.leaveExchange()
		t.exchange = p.routes.Stats
	}
	t.in++
	t.out += uint64(queues)
	t.published++
	if queues == 0 {
		t.unroutable++
		t.none++
		p.vh.Former.unrouted(m.Exchange, m.RoutingKey)
	}
	t.sizes[sizeBucket(len(m.Body))]++
	t.bytes += uint64(len(m.Body))
}

func (t *publisherCounts) leaveExchange() {
	if t.in > 0 {
		t.exchange.In.Add(t.in)
		t.exchange.Out.Add(t.out)
		t.exchange.None.Add(t.none)
		t.in, t.out, t.none = 0, 0, 0
	}
}

// flush hands the numbers over to the broker.
func (t *publisherCounts) flush(b *Broker) {
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
func (t *publisherCounts) forget() {
	t.in, t.out, t.none = 0, 0, 0
	t.published, t.unroutable, t.bytes, t.sizes = 0, 0, 0, [sizeBuckets]uint64{}
}

// Stats are counts since the broker's start; they never fall, whatever is deleted.
type Stats struct {
	Queues     QueueStats // over all queues, deleted ones included
	Published  uint64     // unroutable ones included
	Unroutable uint64
	BodyBytes  uint64              // of what was published
	Sizes      [sizeBuckets]uint64 // publishes by body size: see MessageSizes

	QueuesDeclared, QueuesCreated, QueuesDeleted uint64

	// DeadLettered is by reason; ExpiredDropped counts messages that expired without a
	// dead-letter exchange.
	DeadLettered   [queue.Reasons]uint64
	ExpiredDropped uint64
}

// Loads calls fn with each queue, the number of messages in it, unacked ones included, and its totals, in no order. It returns how many messages clients
// published and how many were delivered to them since the start. Each queue is locked for as long as it takes to copy the numbers.
func (b *Broker) Loads(fn func(q *Queue, messages, consumers int, c *QueueStats)) (published, delivered uint64) {
	all := b.registry.Loads(fn)
	return b.counters.published.Load(), all.AllDelivered()
}

// Stats sums up. It visits every queue.
func (b *Broker) Stats() Stats {
	c, forwarded := &b.counters, &b.forwarder.Counters
	t := Stats{
		Published: c.published.Load(), Unroutable: c.unroutable.Load() + forwarded.Unroutable.Load(), BodyBytes: c.sizes.bytes.Load(),
		QueuesDeclared: b.registry.Declared.Load(), QueuesCreated: b.registry.Created.Load(), QueuesDeleted: b.registry.Deleted.Load(),
		ExpiredDropped: b.env.Counters.ExpiredDropped.Load(), Queues: b.registry.Loads(nil),
	}
	for i := range t.Sizes {
		t.Sizes[i] = c.sizes.buckets[i].Load()
	}
	for i := range t.DeadLettered {
		t.DeadLettered[i] = forwarded.DeadLettered[i].Load()
	}
	return t
}

// Signs are numbers by which one sees that the broker will be, or has been, in trouble.
type Signs struct {
	LettersWaiting      int    // dead letters on their way
	LettersDropped      uint64 // since the start, that no queue took
	PoliciesNotInForce  int
	DiskFree, DiskLimit int64 // bytes; both are 0 if the broker does not look at a disk
}

// SignsOf are those of a broker now.
func SignsOf(b *Broker) Signs {
	s := Signs{
		LettersWaiting: int(max(b.env.Waiting.Load(), 0)), LettersDropped: b.env.Counters.DeadLettersLost.Load(), PoliciesNotInForce: b.policiesNotInForce(),
	}
	if free, limit := b.Alarm.Disk(); free >= 0 {
		s.DiskFree, s.DiskLimit = free, limit
	}
	return s
}

// OpenFiles is the share of the file descriptors of this process that are in use; 0 where that cannot be found out.
func OpenFiles() float64 {
	open, err := os.ReadDir("/proc/self/fd")
	if most := memory.FilesLimit(); err == nil && most > 0 {
		return float64(len(open)) / float64(most)
	}
	return 0
}

// LoginCount counts the logins by one protocol, since the start or the last Reset. Safe for concurrent use.
type LoginCount struct{ Succeeded, Failed atomic.Uint64 }

// Note counts one, which failed if err is not nil.
func (c *LoginCount) Note(err error) {
	if err == nil {
		c.Succeeded.Add(1)
	} else {
		c.Failed.Add(1)
	}
}

// Reset begins to count again.
func (c *LoginCount) Reset() {
	c.Succeeded.Store(0)
	c.Failed.Store(0)
}
