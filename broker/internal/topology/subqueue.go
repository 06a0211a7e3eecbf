package topology

import (
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/internal/queueargs"
)

// QueueName is the name of the queue that a client calls name: another one for a
// dead-letter sub-queue that is spelled in another case. A queue of exactly that name goes
// before, which an older version may have left.
func (t *queueTable) QueueName(name string) string {
	if !queueargs.IsSubqueue(name) {
		return name
	}
	if _, err := t.Queue(name); err == nil {
		return name
	}
	return queueargs.Canonical(name)
}

// makeWithSubqueue makes the queue and before it the one beside it, so that a
// crash leaves no queue without its own. One that is there is taken.
func (t *queueTable) makeWithSubqueue(owner Owner, name string, d QueueDeclare) (*Queue, error) {
	if asked, _ := d.Args["x-dead-letter-queue"].(bool); !asked {
		q, err := t.makeQueue(NewIncarnation(), owner, name, d)
		if err != nil {
			return nil, err
		}
		if err = q.completeSubqueue(); err != nil {
			_, _ = q.remove(func() error { return nil }) // only a second deletion fails
			return nil, err
		}
		return q, nil
	}
	if _, err := queueargs.Parse(t.vh.registry.defaults, t.queueLabel(name), d.Args); err != nil {
		return nil, err
	}
	sub, err := t.makeQueue(NewIncarnation(), owner, name+queueargs.SubqueueSuffix, QueueDeclare{Durable: d.Durable, Exclusive: d.Exclusive})
	if err != nil && err != errTaken {
		return nil, err
	}
	q, err := t.makeQueue(NewIncarnation(), owner, name, d)
	if err != nil && err != errTaken && sub != nil {
		_, _ = sub.remove(func() error { return nil }) // only a second deletion fails
	}
	return q, err
}

// completeSubqueue makes the queue beside one that a policy gives it, unless it is there.
// Dead letters that come before are parked. Errors: those of DeclareQueue.
func (q *Queue) completeSubqueue() error {
	set, vh := q.Settings(), q.vh
	if !set.HasSubqueue {
		return nil
	}
	if _, err := vh.Queue(set.Subqueue); err == nil {
		return nil
	}
	sub, err := vh.makeQueue(NewIncarnation(), q.owner, set.Subqueue, QueueDeclare{Durable: q.declared.Durable, Exclusive: q.declared.Exclusive})
	if err != nil {
		if err == errTaken {
			err = nil
		}
		return err
	}
	if _, err := vh.Queue(q.Name()); err != nil { // it was deleted meanwhile, and its deleter may not have seen this one
		_, _ = sub.remove(func() error { return nil }) // only a second deletion fails
	}
	return nil
}

// CompleteSubqueues is completeSubqueue for queues whose policies have changed, or that are
// back after a restart.
func (t *queueTable) CompleteSubqueues(queues []*Queue) {
	for _, q := range queues {
		if err := q.completeSubqueue(); err != nil {
			t.vh.registry.log.Error("the dead-letter queue that a policy asks for cannot be made: what dies in its queue is parked; mend what is said here and set the policy again",
				q.Fields(err)...)
		}
	}
}

// subqueue returns the queue beside q, nil if there is none.
func (q *Queue) subqueue() *Queue {
	q.vh.mu.RLock()
	defer q.vh.mu.RUnlock()
	return q.vh.queues[q.Name()+queueargs.SubqueueSuffix]
}

// inSubqueue is how many messages are in the queue beside q, ready and unacked. They are deleted with q.
func (q *Queue) inSubqueue() int {
	sub := q.subqueue()
	if sub == nil {
		return 0
	}
	ready, unacked, _ := sub.Counts()
	return ready + unacked
}

// DeadLetters is how many dead letters are deleted with the queue: those that no target has taken yet, and those in the queue beside it.
func (q *Queue) DeadLetters() int { return q.Retained.Count() + q.inSubqueue() }

// dropSubqueue deletes the queue beside one that is deleted.
func (q *Queue) dropSubqueue() {
	if sub := q.subqueue(); sub != nil {
		_, _ = sub.drop(func() error { return nil }) // only a second deletion fails
	}
}

// checkSubqueue refuses a client who would make a queue of a name that is kept.
func checkSubqueue(name string) error {
	if !queueargs.IsSubqueue(name) {
		return nil
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' is kept; declare '%s' with x-dead-letter-queue",
		name, strings.TrimSuffix(queueargs.Canonical(name), queueargs.SubqueueSuffix))
}

// OnlyDeadLetters refuses a client who would publish into a queue that is kept.
func (q *Queue) OnlyDeadLetters() error {
	return amqp.NewException(amqp.AccessRefused, 0, 0, "%s takes the dead letters of queue '%s' and nothing else",
		q.Label(), strings.TrimSuffix(q.Name(), queueargs.SubqueueSuffix))
}

// checkGoes refuses to delete the queue beside one that is there.
func (t *queueTable) checkGoes(name string) error {
	sub, ok := strings.CutSuffix(name, queueargs.SubqueueSuffix)
	if !ok {
		return nil
	}
	if q, err := t.Queue(sub); err != nil || !q.Settings().HasSubqueue {
		return nil
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0, "%s is deleted with queue '%s'", t.queueLabel(name), sub)
}
