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

func (o *Options) exceeded(ready, bytes int64) bool {
	return o.MaxLength >= 0 && ready > o.MaxLength || o.MaxBytes >= 0 && bytes > o.MaxBytes
}

// SetOptions replaces the limits, as a policy does at run time. No message leaves the queue until
// Trim is called. The priorities cannot be changed.
func (q *Queue) SetOptions(o Options) {
	o.Priorities, o.TwoLevels = q.opts.Priorities, q.opts.TwoLevels
	q.opts = o
}

// FullWith reports whether the queue must refuse a message with a body of that size: its Overflow
// is one of the rejecting ones, and the message would take it above a limit. Messages that have
// left the queue and are still kept for it (kept, keptBytes) count, too.
func (q *Queue) FullWith(bytes uint32, kept int, keptBytes int64) bool {
	return q.opts.Overflow != DropHead &&
		q.opts.exceeded(int64(q.Ready.Count+kept)+1, q.Ready.Bytes+keptBytes+int64(bytes))
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
	for n := 0; q.Ready.Count > 0 && q.opts.exceeded(int64(q.Ready.Count), q.Ready.Bytes); n++ {
		if n == AtOnce {
			return true
		}
		s, at, _ := q.first()
		q.settle(s, at, MaxLength, fx)
	}
	return false
}
