package delivery

import (
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/policy"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Identity is what a queue is known by, and its settings. All but the settings is set before the queue
// is used, and does not change. Safe for concurrent use.
type Identity struct {
	ID         uint64 // the incarnation of the queue, which refs and the journal know it by
	vhost      string
	Name       string                          // in its virtual host
	Durable    bool                            // it outlives a restart, by its declaration
	autoDelete bool                            // by its declaration
	Arguments  *policy.Settings                // from the arguments it was made with: what cannot change; other queues may share it
	settings   atomic.Pointer[policy.Settings] // from its arguments and policies, likewise; replaced with the queue's lock held
}

// Settings are the queue's current settings, from its arguments and policies. They do not change while the queue's lock is held.
// Without it they may change between two calls, so values that belong together must come from one call.
func (q *Identity) Settings() *policy.Settings { return q.settings.Load() }

// Label names the queue as RabbitMQ's error texts do.
func (q *Identity) Label() string { return QueueLabel(q.vhost, q.Name) }

// QueueLabel names a queue as RabbitMQ's error texts do.
func QueueLabel(vhost, name string) string {
	return "queue '" + name + "' in vhost '" + vhost + "'"
}

// NoQueue is the error for a queue that does not exist.
func NoQueue(vhost, name string) error {
	return amqp.NewException(amqp.NotFound, 0, 0, "no %s", QueueLabel(vhost, name))
}

// Persists reports whether a message with these flags outlives a restart in the queue. In a quorum queue all do, whatever
// their delivery mode (RabbitMQ: Quorum Queues, Feature comparison).
func (q *Identity) Persists(f queue.Flags) bool {
	return q.Durable && (f&queue.Durable != 0 || q.Arguments.Type == policy.Quorum)
}

// refOf names a message of the queue.
func (q *Identity) refOf(seq queue.Seq, at deadline.Instant) deadline.Ref {
	return deadline.Ref{Deadline: at, Queue: q.ID, Seq: uint64(seq)}
}

// SettleRecord is the journal's record of a message that leaves the queue with that incarnation.
func SettleRecord(id uint64, x *queue.Settled) store.Settle {
	return store.Settle{Queue: id, Seq: uint64(x.Seq), Pos: store.Pos(x.Pos), Durable: x.Flags&queue.Durable != 0}
}
