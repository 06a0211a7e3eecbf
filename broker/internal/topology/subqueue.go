package topology

import (
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/policy"
	"go.uber.org/zap"
)

// NameOf is the name of the queue that a client calls name. It differs only for a dead-letter
// sub-queue whose suffix is spelled in another case. A queue of exactly that name, which an
// older version may have left, takes precedence.
func (t *Queues) NameOf(name string) string {
	if !policy.IsSubqueue(name) {
		return name
	}
	if _, err := t.Get(name); err == nil {
		return name
	}
	return policy.Canonical(name)
}

// makeWithSubqueue makes the queue. If its arguments ask for a sub-queue, it makes that first, so
// that a crash leaves no queue without its sub-queue. An existing sub-queue is used.
func (t *Queues) makeWithSubqueue(owner Owner, name string, d QueueDeclare) (*Queue, error) {
	if asked, _ := d.Args["x-dead-letter-queue"].(bool); !asked {
		q, err := t.makeQueue(NewIncarnation(), owner, name, d)
		if err != nil {
			return nil, err
		}
		if err = q.completeSubqueue(); err != nil {
			_, _ = q.remove(nil) // only a second deletion fails
			return nil, err
		}
		return q, nil
	}
	set, err := policy.ParseQueue(t.vh.registry.defaults, t.queueLabel(name), d.Args)
	if err != nil {
		return nil, err
	}
	sub, err := t.makeQueue(NewIncarnation(), owner, name+policy.SubqueueSuffix, QueueDeclare{Durable: d.Durable, Exclusive: d.Exclusive, Args: set.SubqueueArgs()})
	if err != nil && err != errTaken {
		return nil, err
	}
	q, err := t.makeQueue(NewIncarnation(), owner, name, d)
	if err != nil && err != errTaken && sub != nil {
		_, _ = sub.remove(nil) // only a second deletion fails
	}
	return q, err
}

// completeSubqueue makes the sub-queue that a policy gives to q, unless it exists. Dead letters
// that arrive before that are parked. Errors: those of Queues.Declare.
func (q *Queue) completeSubqueue() error {
	set, vh := q.Settings(), q.vh
	if !set.HasSubqueue {
		return nil
	}
	if _, err := vh.Queues.Get(set.Subqueue); err == nil {
		return nil
	}
	sub, err := vh.Queues.makeQueue(NewIncarnation(), q.owner, set.Subqueue, QueueDeclare{Durable: q.Declared().Durable, Exclusive: q.Declared().Exclusive, Args: set.SubqueueArgs()})
	if err != nil {
		if err == errTaken {
			err = nil
		}
		return err
	}
	if _, err := vh.Queues.Get(q.Name); err != nil { // q was deleted in the meantime, and that may have missed its sub-queue
		_, _ = sub.remove(nil) // only a second deletion fails
	}
	return nil
}

// CompleteSubqueues is completeSubqueue for queues whose policies have changed, or that have been
// restored.
func (t *Queues) CompleteSubqueues(queues []*Queue) {
	for _, q := range queues {
		if err := q.completeSubqueue(); err != nil {
			t.vh.registry.log.Error("cannot create the dead-letter queue that a policy asks for; dead letters are parked until the cause is corrected and the policy is set again",
				zap.String("vhost", q.vh.guard.name), zap.String("queue", q.Name), zap.Error(err))
		}
	}
}

// companion returns the queue with q's name and a suffix, nil if there is none.
func companion(q *Queue, suffix string) *Queue {
	q.vh.guard.mu.RLock()
	defer q.vh.guard.mu.RUnlock()
	return q.vh.Queues.queues[q.Name+suffix]
}

// inSubqueue is how many messages, ready and unacked, are in q's sub-queue. They are deleted with q.
func (q *Queue) inSubqueue() int {
	sub := companion(q, policy.SubqueueSuffix)
	if sub == nil {
		return 0
	}
	ready, unacked, _ := sub.Messages.Counts()
	return ready + unacked
}

// DeadLetters is how many dead letters are deleted with the queue: those that no target has taken
// yet, and those in its sub-queue.
func (q *Queue) DeadLetters() int { return q.Messages.Retained.Count() + q.inSubqueue() }

// dropSubqueue deletes the sub-queue of a deleted queue, and its deferred messages.
func (q *Queue) dropSubqueue() (left leftovers) {
	for _, suffix := range [...]string{policy.SubqueueSuffix, policy.DeferredSuffix} {
		if sub := companion(q, suffix); sub != nil {
			_, more, _ := sub.drop(nil) // only a second deletion fails
			left = append(left, more...)
		}
	}
	return left
}

// checkSubqueue refuses a client that declares a queue with the reserved name of a sub-queue.
func checkSubqueue(name string) error {
	if !policy.IsSubqueue(name) {
		return nil
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' is reserved; declare '%s' with x-dead-letter-queue",
		name, strings.TrimSuffix(policy.Canonical(name), policy.SubqueueSuffix))
}

// OnlyDeadLetters refuses a client that publishes into a sub-queue.
func (q *Queue) OnlyDeadLetters() error {
	return amqp.NewException(amqp.AccessRefused, 0, 0, "%s takes the dead letters of queue '%s' and nothing else",
		q.Label(), strings.TrimSuffix(q.Name, policy.SubqueueSuffix))
}

// checkQueueDeletable refuses to delete the sub-queue of an existing queue.
func (t *Queues) checkQueueDeletable(name string) error {
	sub, ok := strings.CutSuffix(name, policy.SubqueueSuffix)
	if !ok {
		return nil
	}
	if q, err := t.Get(sub); err != nil || !q.Settings().HasSubqueue {
		return nil
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0, "%s is deleted with queue '%s'", t.queueLabel(name), sub)
}
