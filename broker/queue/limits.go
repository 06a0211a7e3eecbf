package queue

import "unique"

// Overflow says what a queue at its limits does with a publish (RabbitMQ: Queue
// Length Limit).
type Overflow uint8

const (
	// DropHead makes room by dropping from the head.
	DropHead Overflow = iota
	// RejectPublish refuses the new message.
	RejectPublish
	// RejectPublishDLX refuses it and dead-letters it.
	RejectPublishDLX
)

// Options are a queue's limits. A negative limit means none, so the zero value allows no ready
// message at all.
type Options struct {
	MaxLength int64 // ready messages
	MaxBytes  int64 // bodies of the ready messages
	Overflow  Overflow
	// Priorities is the highest priority; 0: the queue has no priorities.
	Priorities uint8
	// TwoLevels gives the queue two priorities, normal and high: what is published with more than 4 is high, and while there are messages of both,
	// two high ones are delivered for each normal one (RabbitMQ 4: Quorum Queues, "Priorities"). Priorities is 1 then.
	TwoLevels bool
	// DeliveryLimit: a message is requeued until more than this many of its deliveries have
	// failed. The count stops at 65535, so a higher limit has no effect.
	DeliveryLimit int64
	// Retry is how long a message waits that came back; NoRetry: not at all.
	Retry unique.Handle[Retry]
}

// SetOptions replaces the limits, as a policy does at run time. No message leaves the queue until
// Trim is called. The priorities cannot be changed.
func (q *Queue) SetOptions(o Options) {
	o.Priorities, o.TwoLevels = q.opts.Priorities, q.opts.TwoLevels
	q.opts = o
}

// Exceeds reports whether the queue would be above a limit with that many more messages ready.
func (q *Queue) Exceeds(messages int, bytes int64) bool {
	o := &q.opts
	return o.MaxLength >= 0 && int64(q.Ready.Count+messages) > o.MaxLength || o.MaxBytes >= 0 && q.Ready.Bytes+bytes > o.MaxBytes
}

// Trim drops ready messages from the head until the queue is within its limits,
// if its Overflow is DropHead. The head is the message that would be delivered
// next, so high priorities are dropped before low ones, as RabbitMQ's classic
// queues do (RabbitMQ: Priority Queue, "Interaction with Other Features"). It settles at most AtOnce
// messages; more: the queue is still above its limits.
func (q *Queue) Trim(fx *Effects) (more bool) {
	if q.opts.Overflow != DropHead {
		return false
	}
	for n := 0; q.Ready.Count > 0 && q.Exceeds(0, 0); n++ {
		if n == AtOnce {
			return true
		}
		s, at, _ := q.first()
		q.settle(s, at, MaxLength, fx)
	}
	return false
}
