package topology

import (
	"slices"
	"strings"
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/internal/delivery"
	"curfew/broker/policy"
)

// Owner is the connection an exclusive queue belongs to: any comparable value,
// nil for the broker itself.
type Owner any

// Queue is a declared queue: what is in it, and what its virtual host knows about it. Safe for concurrent use.
type Queue struct {
	delivery.Identity // of Messages, too
	Messages          delivery.Queue
	vh                *VHost
	declared          atomic.Pointer[declaration] // replaced with vh.mu held
	owner             Owner                       // of an exclusive queue

	Recovered bool // made for messages whose queue's definition was not found
	gone      bool // it is deleted; what is left of its bindings leads nowhere. Guarded by vh.mu
	marks     atomic.Uint32

	policies *applied // guarded by vh.mu
	sources  sources
}

// The marks of a queue.
const (
	expired  = 1 << iota // it was deleted because it was idle
	consumed             // a client has consumed it, in this run or an earlier one
	missed               // somebody deleted it, and publishers may go on: see Options.Former
)

// declaration is how a queue was declared, with the changes since, and what its arguments say. It is not changed.
type declaration struct {
	QueueDeclare
	settings *policy.Settings // other queues may share it
}

// VHost is the virtual host the queue is in.
func (q *Queue) VHost() *VHost { return q.vh }

// Consumed reports whether a client has ever consumed the queue. A durable queue remembers it over a restart.
func (q *Queue) Consumed() bool { return q.marks.Load()&consumed != 0 }

// NoteConsumed remembers that a client consumes the queue, or has got a message of it. The first time it waits for those who change the queue.
func (q *Queue) NoteConsumed() {
	if q.Consumed() || q.marks.Or(consumed)&consumed != 0 || !q.Durable {
		return
	}
	key := q.definition().Key()
	_ = q.vh.guard.claimedNow(key, func() error { // an error: the virtual host was deleted
		if q.vh.Queues.queues[q.Name] == q {
			q.vh.guard.noteLocked(key, q.definition())
		}
		return nil
	})
}

// checkOwner refuses a connection that is not the owner of an exclusive queue.
func (q *Queue) checkOwner(owner Owner) error {
	if !q.Declared().Exclusive || q.owner == owner {
		return nil
	}
	return q.locked()
}

// locked is RabbitMQ's error for a connection that does not own the queue.
func (q *Queue) locked() error {
	return amqp.NewException(amqp.ResourceLocked, 0, 0,
		"cannot obtain exclusive access to locked %s. It could be originally declared on another connection or the exclusive property value does not match that of the original declaration.",
		q.Label())
}

// LastConsumerGone deletes an auto-delete queue whose last consumer has gone.
func (q *Queue) LastConsumerGone() {
	_, _ = q.remove(func(held delivery.Holding) error {
		if held.Consumers > 0 {
			return delivery.ErrInUse
		}
		return nil
	})
}

// CheckIdle deletes the queue if it has been idle for its period, and reports whether it did.
func (q *Queue) CheckIdle() (deleted bool) {
	q.countUseOfParts()
	if q.vh.judge(q, nil) {
		return false
	}
	return q.expireIdle()
}

// remove deletes q unless veto, called under q's lock, returns an error; nil: nothing prevents it. It returns ErrGone if q
// is already deleted, and otherwise waits until the deletion is on disk, or logs that it cannot
// be saved.
func (q *Queue) remove(veto func(delivery.Holding) error) (ready int, err error) {
	ready, left, err := q.drop(veto)
	if err == nil {
		left.settle()
		q.vh.sweep()
		q.vh.registry.saveDeleted()
	}
	return ready, err
}

// drop deletes q unless veto returns an error, but leaves it to the caller to settle what it and its
// sub-queue held, and to save the deletion.
func (q *Queue) drop(veto func(delivery.Holding) error) (ready int, left leftovers, err error) {
	s := q.vh.registry.env.Begin()
	defer s.Done()
	ready, orphans, held, err := q.Messages.Delete(s, veto)
	if err != nil {
		return 0, nil, err
	}
	ended := q.erase()
	left = append(q.dropSubqueue(), leftover{q, held, !ended && q.Durable})
	for _, c := range orphans {
		c.Sink.Cancelled(c)
	}
	return ready, left, nil
}

// leftovers are what deleted queues held.
type leftovers []leftover

type leftover struct {
	q     *Queue
	held  *delivery.Contents
	noted bool // a note of the deletion is kept until it is settled
}

// settle settles all messages, in steps. It takes time for each.
func (l leftovers) settle() {
	for _, x := range l {
		if x.held.Settle(); x.noted {
			x.q.vh.registry.ForgetDeleted(x.q.ID)
		}
	}
}

// erase removes the name and the bindings of a deleted queue. It reports whether the virtual host is
// deleted too.
func (q *Queue) erase() (all bool) {
	vh := q.vh
	vh.guard.lock()
	defer vh.guard.unlock()
	if vh.Queues.queues[q.Name] == q {
		delete(vh.Queues.queues, q.Name)
		lower := strings.ToLower(q.Name)
		others := slices.DeleteFunc(vh.Queues.cased[lower], func(x *Queue) bool { return x == q })
		if vh.Queues.cased[lower] = others; len(others) == 0 {
			delete(vh.Queues.cased, lower)
		}
		vh.memory.giveLocked(q.footprint())
		if q.Durable {
			vh.guard.noteLocked(q.definition().Key(), nil)
			vh.guard.noteLocked(DeletedKey(q.ID), true)
		}
		if q.marks.Load()&missed != 0 && vh.former != nil {
			vh.former("", q.Name, q)
		}
	}
	if q.Recovered && vh.registry.ByID(q.ID) == q {
		vh.registry.Adopted.Add(-1)
	}
	delete(vh.Queues.owned[q.owner], q)
	if !q.gone {
		q.gone = true
		vh.sweeps.addLocked(destination{queue: q})
		vh.sweeps.stepLocked(sweepStep)
	}
	vh.registry.drop(q)
	vh.registry.env.Timers.Drop(&q.Messages)
	vh.changedLocked()
	return vh.guard.deleted
}

// DeadLettersTo is where the queue's dead letters go. ok is false if it has no dead-letter
// exchange. key is "" if each dead letter keeps its own routing key.
func (q *Queue) DeadLettersTo() (exchange, key string, ok bool) {
	set := q.Settings()
	return set.DeadLetterExchange, set.DeadLetterKey, set.DeadLetters
}
