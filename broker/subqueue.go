package broker

import (
	"fmt"
	"strings"

	"curfew/broker/amqp"
	"curfew/broker/queue"
)

// subqueueSuffix ends the name of the queue that x-dead-letter-queue makes beside
// its queue (Service Bus: Overview of dead-letter queues). That queue is as durable
// and exclusive as its queue, is deleted with it, and nothing expires in it; dead
// letters go there when no dead-letter exchange is set, neither by argument nor by
// policy. Where a policy made it and no longer applies, it stays with what is in it, gets
// no more, may be deleted by itself, and still goes with its queue.
const subqueueSuffix = "/$deadletterqueue"

// IsSubqueue says whether a name is that of a queue which x-dead-letter-queue makes, in
// any case of the last part, as in Service Bus. Such a queue's own is in lower case.
func IsSubqueue[T string | []byte](name T) bool {
	at := len(name) - len(subqueueSuffix)
	return at >= 0 && name[at] == '/' && strings.EqualFold(string(name[at:]), subqueueSuffix)
}

// canonical is the name under which a queue stands that a client calls name.
func canonical(name string) string {
	if !IsSubqueue(name) {
		return name
	}
	return name[:len(name)-len(subqueueSuffix)] + subqueueSuffix
}

// QueueName is the name of the queue that a client calls name: another one for a
// dead-letter sub-queue that is spelled in another case. A queue of exactly that name goes
// before, which an older version may have left.
func (vh *VHost) QueueName(name string) string {
	if !IsSubqueue(name) {
		return name
	}
	if _, err := vh.Queue(name); err == nil {
		return name
	}
	return canonical(name)
}

// nameSubqueue settles what the name of the queue means for it.
func (vh *VHost) nameSubqueue(s *settings, name string) error {
	s.keeps = strings.HasSuffix(name, subqueueSuffix)
	if !s.hasSubqueue {
		return nil
	}
	s.subqueue = name + subqueueSuffix
	if n := len(s.subqueue); n > 255 {
		s.hasSubqueue = false
		return vh.badArg("x-dead-letter-queue", vh.queueLabel(name), fmt.Sprintf("{too_long,%d}", n))
	}
	return nil
}

// useSubqueue has dead letters go to the queue beside, if nothing else was said.
func (s *settings) useSubqueue() {
	if s.hasSubqueue && !s.deadLetter {
		s.deadLetter, s.dlx, s.dlk, s.ownKey = true, "", s.subqueue, true
	}
}

// makeWithSubqueue makes the queue and before it the one beside it, so that a
// crash leaves no queue without its own. One that is there is taken.
func (vh *VHost) makeWithSubqueue(owner Owner, name string, d QueueDeclare) (*Queue, error) {
	if asked, _ := d.Args["x-dead-letter-queue"].(bool); !asked {
		q, err := vh.makeQueue(newIncarnation(), owner, name, d)
		if err != nil {
			return nil, err
		}
		if err = q.completeSubqueue(); err != nil {
			vh.remove(q, func() error { return nil })
			return nil, err
		}
		return q, nil
	}
	if _, err := vh.parseSettings(vh.queueLabel(name), d.Args); err != nil {
		return nil, err
	}
	beside, err := vh.makeQueue(newIncarnation(), owner, name+subqueueSuffix, QueueDeclare{Durable: d.Durable, Exclusive: d.Exclusive})
	if err != nil && err != errTaken {
		return nil, err
	}
	q, err := vh.makeQueue(newIncarnation(), owner, name, d)
	if err != nil && err != errTaken && beside != nil {
		vh.remove(beside, func() error { return nil })
	}
	return q, err
}

// completeSubqueue makes the queue beside one that a policy gives it, unless it is there.
// Dead letters that come before are parked. Errors: those of DeclareQueue.
func (q *Queue) completeSubqueue() error {
	set, vh := q.set(), q.vh
	if !set.hasSubqueue {
		return nil
	}
	if _, err := vh.Queue(set.subqueue); err == nil {
		return nil
	}
	beside, err := vh.makeQueue(newIncarnation(), q.owner, set.subqueue, QueueDeclare{Durable: q.declared.Durable, Exclusive: q.declared.Exclusive})
	if err != nil {
		if err == errTaken {
			err = nil
		}
		return err
	}
	if _, err := vh.Queue(q.name); err != nil { // it was deleted meanwhile, and its deleter may not have seen this one
		vh.remove(beside, func() error { return nil })
	}
	return nil
}

// completeSubqueues is completeSubqueue for those of which policies say something new, or
// that are there after a restart.
func (vh *VHost) completeSubqueues(queues []*Queue) {
	for _, q := range queues {
		if err := q.completeSubqueue(); err != nil {
			vh.b.log.Error("the dead-letter queue that a policy asks for cannot be made: what dies in its queue is parked; mend what is said here and set the policy anew",
				q.fields(err)...)
		}
	}
}

// subqueueOf returns the queue beside one, nil if there is none.
func (vh *VHost) subqueueOf(q *Queue) *Queue {
	vh.mu.RLock()
	defer vh.mu.RUnlock()
	return vh.queues[q.name+subqueueSuffix]
}

// dropSubqueue deletes the queue beside one that is deleted.
func (vh *VHost) dropSubqueue(q *Queue) {
	if beside := vh.subqueueOf(q); beside != nil {
		vh.drop(beside, func() error { return nil })
	}
}

// checkSubqueue refuses a client who would make a queue of a name that is kept.
func checkSubqueue(name string) error {
	if !IsSubqueue(name) {
		return nil
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0, "queue name '%s' is kept; declare '%s' with x-dead-letter-queue",
		name, strings.TrimSuffix(canonical(name), subqueueSuffix))
}

// onlyDeadLetters refuses a client who would publish into a queue that is kept.
func (vh *VHost) onlyDeadLetters(q *Queue) error {
	return amqp.NewException(amqp.AccessRefused, 0, 0, "%s takes the dead letters of queue '%s' and nothing else",
		q.Label(), strings.TrimSuffix(q.name, subqueueSuffix))
}

// checkGoes refuses to delete the queue beside one that is there.
func (vh *VHost) checkGoes(name string) error {
	beside, ok := strings.CutSuffix(name, subqueueSuffix)
	if !ok {
		return nil
	}
	if q, err := vh.Queue(beside); err != nil || !q.set().hasSubqueue {
		return nil
	}
	return amqp.NewException(amqp.AccessRefused, 0, 0, "%s is deleted with queue '%s'", vh.queueLabel(name), beside)
}

// explains says whether a dead letter is to say why it is one in Service Bus's words.
func (s *settings) explains(r queue.Reason) bool {
	return s.hasSubqueue || r == queue.DeliveryLimit && s.maxDeliveries > 0
}

// explain writes on a dead letter why it is one, in Service Bus's words where it has
// them. There a receiver gives the reason of its own; AMQP 0-9-1's has no way to. What a
// publisher wrote under these names goes.
func explain(headers amqp.Table, x *queue.Settled) {
	switch x.Reason {
	case queue.Expired:
		headers["DeadLetterReason"] = "TTLExpiredException"
		headers["DeadLetterErrorDescription"] = "The message expired and was dead lettered."
	case queue.DeliveryLimit:
		headers["DeadLetterReason"] = "MaxDeliveryCountExceeded"
		headers["DeadLetterErrorDescription"] = fmt.Sprintf("Message could not be consumed after %d delivery attempts.", x.Deliveries)
	case queue.Rejected:
		headers["DeadLetterReason"] = "Rejected"
		headers["DeadLetterErrorDescription"] = "The message was rejected by its consumer."
	default:
		delete(headers, "DeadLetterReason")
		delete(headers, "DeadLetterErrorDescription")
	}
}
