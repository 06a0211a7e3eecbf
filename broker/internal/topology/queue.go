package topology

import (
	"sync/atomic"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/internal/delivery"
)

// Owner is the connection an exclusive queue belongs to: any comparable value,
// nil for the broker itself.
type Owner any

// Queue is a declared queue: one at work, and what its virtual host knows of it. Safe for
// concurrent use.
type Queue struct {
	delivery.Queue
	vh       *VHost
	declared QueueDeclare
	owner    Owner // of an exclusive queue

	recovered bool        // its messages were found without the definition of theirs
	expired   atomic.Bool // it is deleted because it was idle

	policies *applied // guarded by vh.mu
	sources  sources
}

// VHost is the virtual host the queue is in.
func (q *Queue) VHost() *VHost { return q.vh }

// Recovered reports whether it was made for messages that were found without the definition of theirs.
func (q *Queue) Recovered() bool { return q.recovered }

// checkOwner refuses a connection that is not the owner of an exclusive queue.
func (q *Queue) checkOwner(owner Owner) error {
	if !q.declared.Exclusive || q.owner == owner {
		return nil
	}
	return q.locked()
}

// locked is RabbitMQ's refusal to whom the queue does not belong.
func (q *Queue) locked() error {
	return amqp.NewException(amqp.ResourceLocked, 0, 0,
		"cannot obtain exclusive access to locked %s. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.",
		q.Label())
}

// LastConsumerGone deletes an auto-delete queue whose last consumer has gone.
func (q *Queue) LastConsumerGone() {
	_, _ = q.remove(func() error {
		if q.InUseLocked() {
			return delivery.ErrInUse
		}
		return nil
	})
}

// CheckIdle sees to what the queue's use means for it; true: it is deleted.
func (q *Queue) CheckIdle() (deleted bool) {
	q.heedSubqueue()
	if q.vh.judge(q, nil) {
		return false
	}
	return q.expireIdle()
}

// remove deletes q unless veto, asked under q's lock, objects; ErrGone if somebody has
// already. It returns when that is on disk, or cannot be saved, which is logged.
func (q *Queue) remove(veto func() error) (ready int, err error) {
	if ready, err = q.drop(veto); err == nil {
		q.vh.registry.saveDeleted()
	}
	return ready, err
}

// drop is remove for a caller that does not wait for the disk.
func (q *Queue) drop(veto func() error) (ready int, err error) {
	s := q.vh.registry.env.Begin()
	defer s.Done()
	ready, orphans, err := q.Delete(s, veto)
	if err != nil {
		return 0, err
	}
	q.forget()
	q.dropSubqueue()
	for _, c := range orphans {
		c.Sink.Cancelled(c)
	}
	return ready, nil
}

// forget takes a deleted queue, whose messages are settled, out of the names and bindings.
func (q *Queue) forget() {
	if !q.erase() && q.durable() {
		q.vh.registry.ForgetDeleted(q.ID())
	}
}

// erase reports whether the virtual host is deleted too.
func (q *Queue) erase() (all bool) {
	vh := q.vh
	vh.mu.Lock()
	defer vh.unlock()
	if vh.queues[q.Name()] == q {
		delete(vh.queues, q.Name())
		vh.chargeLocked(q.policies, ungoverned)
		vh.memory.giveLocked(q.footprint())
		if q.durable() {
			vh.undefineLocked(q.definition().Key())
			vh.DefineLocked(DeletedKey(q.ID()), true)
		}
	}
	if q.recovered && vh.registry.ByID(q.ID()) == q {
		vh.registry.Adopted.Add(-1)
	}
	delete(vh.owned[q.owner], q)
	destination{queue: q}.unbindLocked()
	vh.registry.drop(q)
	vh.registry.env.Timers.Drop(&q.Queue)
	vh.changedLocked()
	return vh.deleted
}

// Fields describe the queue in a log entry.
func (q *Queue) Fields(err error) []zap.Field {
	return []zap.Field{zap.String("vhost", q.vh.name), zap.String("queue", q.Name()), zap.Error(err)}
}

// DeadLettersTo is where the queue's dead letters go; false: it has no dead-letter
// exchange. key is "" where each goes by its own.
func (q *Queue) DeadLettersTo() (exchange, key string, ok bool) {
	set := q.Settings()
	return set.DeadLetterExchange, set.DeadLetterKey, set.DeadLetters
}
