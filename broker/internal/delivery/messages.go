package delivery

import (
	"sync"
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/queueargs"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// messages are what is in a queue, behind the queue's lock: the core, what names the
// queue and what holds for it. Whoever only looks at a queue needs nothing else (browse.go,
// deadlines.go).
type messages struct {
	env         *Env
	id          uint64
	vhost, name string
	Arguments   *queueargs.Settings                // by its arguments alone; others may have the same
	settings    atomic.Pointer[queueargs.Settings] // by its arguments and policies, likewise; changed with mu held

	mu           sync.Mutex
	core         *queue.Queue
	enqueued     *enqueueTimes // of a queue with x-delivery-deadline; of others it is nil
	counters     counters
	Durable      bool // it outlives a restart, by its declaration; not guarded
	deleted      bool
	lastActiveAt deadline.Instant // when something happened last
	lastUsedAt   deadline.Instant // when it was used last, by the rules of x-auto-delete-on-idle
}

// ID is the incarnation of the queue, the name of its messages' schedule.
func (q *messages) ID() uint64 { return q.id }

// Name is the queue's name in its virtual host.
func (q *messages) Name() string { return q.name }

// Set is what holds for the queue now. It does not change while mu is held.
// Without mu it may change between two calls, so values that belong together are read from one call.
func (q *messages) Settings() *queueargs.Settings { return q.settings.Load() }

// Type is what the queue was declared as.
func (q *messages) Type() queueargs.QueueType { return q.Arguments.Type }

// ConsumerTimeoutMillis is how long its deliveries may stay unacknowledged by the
// queue's argument or policy (RabbitMQ 3.12: Delivery Acknowledgement Timeout); 0
// where neither sets it.
func (q *messages) ConsumerTimeoutMillis() int64 { return q.Settings().TimeoutMillis }

// Label names the queue as RabbitMQ's error texts do.
func (q *messages) Label() string { return QueueLabel(q.vhost, q.name) }

// QueueLabel names a queue as RabbitMQ's error texts do.
func QueueLabel(vhost, name string) string {
	return "queue '" + name + "' in vhost '" + vhost + "'"
}

func (q *messages) notFound() error {
	return amqp.NewException(amqp.NotFound, 0, 0, "no %s", q.Label())
}

// Persists reports whether a message of these flags outlives a restart in the queue. In a
// quorum queue all do, whatever their delivery mode (RabbitMQ: Quorum Queues, Feature
// comparison).
func (q *messages) Persists(f queue.Flags) bool {
	return q.Durable && (f&queue.Durable != 0 || q.Arguments.Type == queueargs.Quorum)
}

// lock takes the queue's lock for a transition, and then reads the clock: the lock may have
// been waited for.
func (q *messages) lock(s *Transition) {
	q.mu.Lock()
	s.ReadClock()
	q.lastActiveAt = s.Now
}

// markUsedLocked notes that the queue was used in a way that counts for
// x-auto-delete-on-idle. The timer stays as it is: when it fires, the queue finds that it was
// used since.
func (q *messages) markUsedLocked(now deadline.Instant) { q.lastUsedAt = now }

// refOf names a message of the queue.
func (q *messages) refOf(seq queue.Seq, at deadline.Instant) deadline.Ref {
	return deadline.Ref{Deadline: at, Queue: q.id, Seq: uint64(seq)}
}

// Ref names a message that Browse showed.
func (q *messages) Ref(x *Browsed) deadline.Ref { return q.refOf(x.Seq, x.Deadline) }

// termsLocked are what the journal has to know of a message besides its place.
func (q *messages) termsLocked(seq queue.Seq) (queue.Message, store.Terms, bool) {
	x, deliveries, ok := q.core.Find(seq)
	return x, store.Terms{ExpiresAt: x.ExpiresAt, Deliveries: deliveries, Flags: uint8(x.Flags)}, ok
}

// amendLocked has the present terms of a message journaled with the transition's records.
func (q *messages) amendLocked(s *Transition, seq queue.Seq) {
	x, terms, ok := q.termsLocked(seq)
	if ok && x.Flags&queue.Durable != 0 {
		s.amended = append(s.amended, store.Amend{Queue: q.id, Seq: uint64(seq), Pos: store.Pos(x.Pos), Durable: true, Terms: terms})
	}
}

// Tails returns, by priority, the last message that entered the queue, even if it has left
// again: what comes later has a higher Seq of its priority. 0: none did.
func (q *messages) Tails() []queue.Seq {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Tails()
}

// SettleRecord is the journal's record of a message that leaves the queue of that incarnation.
func SettleRecord(id uint64, x *queue.Settled) store.Settle {
	return store.Settle{Queue: id, Seq: uint64(x.Seq), Pos: store.Pos(x.Pos), Durable: x.Flags&queue.Durable != 0}
}
