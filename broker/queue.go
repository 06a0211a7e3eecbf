package broker

import (
	"sync"
	"sync/atomic"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Owner is the connection an exclusive queue belongs to: any comparable value,
// nil for the broker itself.
type Owner any

// Queue is a declared queue: the pure state machine, its consumers, and the
// lock that makes each transition one critical section. Safe for concurrent use.
type Queue struct {
	vh       *VHost
	id       uint64 // incarnation: not used again when the name is
	name     string
	declared QueueDeclare
	owner    Owner    // of an exclusive queue
	asked    settings // by its arguments

	recovered bool // its messages were found without the definition of theirs

	settings atomic.Pointer[settings] // what holds: asked and policies; changed with mu held
	policies applied                  // guarded by vh.mu
	sources  sources

	cycleTold   atomic.Bool
	receiptTold atomic.Bool
	boundTold   atomic.Bool
	alarmIndex  int  // in the broker's alarms, by which it is guarded
	inTurn      bool // in its virtual host's sources, likewise by the forwarder
	held        bool // its letters wait for memory, likewise

	mu        sync.Mutex
	core      *queue.Queue
	consumers lineup
	active    *Consumer // of a queue with x-single-active-consumer; nil only while it has no consumers
	locks     locks
	enqueued  enqueueTimes // of those with x-delivery-deadline
	letters   letterLine
	retained  retained
	consumed  bool // had a consumer once: auto-delete may act
	deleted   bool
	untidy    bool // the tidier has it in mind
	tally     queueTally
	usedAt    int64   // Unix µs of the last thing that happened in it
	stirredAt int64   // Unix µs: x-auto-delete-on-idle counts from it
	idleAt    int64   // x-expires: when it expires unless used; 0 while it has consumers
	judged    bool    // x-auto-delete-on-idle has run out, and it is among the idlers
	delays    *delays // nil, but for the queue of a virtual host's delayed messages
	flow      *flow   // nil: has not been crowded with consumers there
}

// ID is the incarnation of the queue, the name of its messages' schedule.
func (q *Queue) ID() uint64 { return q.id }

// VHost is the virtual host the queue is in.
func (q *Queue) VHost() *VHost { return q.vh }

// Name is the queue's name in its virtual host.
func (q *Queue) Name() string { return q.name }

// Counts returns the ready and unacked messages and the consumers.
func (q *Queue) Counts() (ready, unacked, consumers int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Ready(), q.core.Unacked(), q.consumers.count
}

// set is what holds for the queue now. Under mu it stays; else it may change
// from one call to the next, so what belongs together is read from one.
func (q *Queue) set() *settings { return q.settings.Load() }

// Type is what the queue was declared as.
func (q *Queue) Type() QueueType { return q.asked.kind }

// ConsumerTimeoutMillis is how long its deliveries may stay unacknowledged by the
// queue's argument or policy (RabbitMQ 3.12: Delivery Acknowledgement Timeout); 0
// where it says nothing.
func (q *Queue) ConsumerTimeoutMillis() int64 { return q.set().timeoutMillis }

// Label names the queue as RabbitMQ's error texts do.
func (q *Queue) Label() string { return q.vh.queueLabel(q.name) }

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

// item is one message on its way into one queue.
type item struct {
	message       queue.Message // ExpiresAt: its absolute deadline, 0 none; or when a delayed one is due
	priority      uint8
	ttlMillis     int64 // of the message itself; <0 none
	ceilingMillis int64 // of the exchange it came by; <0 none
	number        int   // of the publish within its batch
	firm          bool  // a dead letter that a full queue refuses: its source keeps it
	move          int   // index of the crossing in the turn under way that it is; <0 a publish
}

// publish enters items in order, then offers what is ready to the consumers.
func (q *Queue) publish(s *step, items []item) {
	q.lock(s)
	defer q.mu.Unlock()
	if q.deleted {
		for i := range items {
			s.b.store.Release(store.Pos(items[i].message.Pos))
			if items[i].firm {
				s.turns.refuse(items[i].move)
			}
		}
		return
	}
	set := q.set()
	limited := set.limited()
	if !set.keeps { // dead letters that arrive are no use of their queue
		q.stir(s.now)
	}
	for i := range items {
		if limited && q.refuse(s, &items[i]) {
			continue
		}
		q.enter(s, &items[i])
		if limited {
			q.dispatch(s)
			q.core.Trim(&s.fx)
		}
	}
	if !limited {
		q.dispatch(s)
	}
	q.expireInstant(s)
	q.finish(s, Lazy)
	q.press(s)
}

// enter puts one message at the tail and stamps its deadline.
func (q *Queue) enter(s *step, it *item) {
	m := it.message
	if !q.durable() {
		m.Flags &^= queue.Durable
	}
	if q.delays == nil {
		at, immediate := q.deadline(s, it)
		if m.ExpiresAt = at; immediate {
			m.Flags |= queue.Immediate
		}
	}
	q.tally.entered(&m)
	seq := q.core.Publish(m, it.priority)
	switch {
	case q.delays != nil:
		q.delays.add(q, due{m.ExpiresAt, seq}, store.Pos(m.Pos))
	case m.ExpiresAt == 0:
	case m.ExpiresAt <= s.now:
		s.instant = append(s.instant, seq)
	default:
		s.tell(DeadlineEvent{Kind: DeadlineEnqueued, Ref: q.ref(seq, m.ExpiresAt)})
	}
	entered := store.Enqueue{Queue: q.id, Seq: uint64(seq), Pos: store.Pos(m.Pos), ExpiresAt: m.ExpiresAt, Flags: uint8(m.Flags), Durable: m.Flags&queue.Durable != 0}
	if q.asked.shows&showDeadline != 0 {
		entered.EnqueuedAt = s.stamp
		q.enqueued.add(seq, s.stamp)
	}
	if it.move >= 0 {
		s.turns.entered(it.move, entered)
	} else {
		s.entered = append(s.entered, entered)
	}
}

// refuse turns a publish away that would overflow the queue, if that is its
// overflow mode. A dead letter is never turned away: its source has let it go.
func (q *Queue) refuse(s *step, it *item) bool {
	if it.move >= 0 && !it.firm || !q.full(it.message.Bytes) {
		return false
	}
	if it.firm {
		s.turns.refuse(it.move)
		s.b.store.Release(store.Pos(it.message.Pos))
		return true
	}
	s.refused = append(s.refused, it.number)
	s.b.counters.refused.Add(1)
	if q.set().core.Overflow == queue.RejectPublishDLX && q.set().deadLetter {
		q.finish(s, Lazy) // what has left before died before
		s.post(q, letter{settled: queue.Settled{Message: it.message, Reason: queue.MaxLength}, set: q.set(), at: s.now})
	} else {
		s.b.store.Release(store.Pos(it.message.Pos))
	}
	return true
}

// full says whether a message of so many bytes is one that the queue refuses. Called with mu
// held.
func (q *Queue) full(bytes uint32) bool {
	return q.core.FullBeside(bytes, len(q.retained.line), q.retained.bytes)
}

// expireInstant expires what was past its deadline when it came, and the TTL 0
// messages that no consumer took at once.
func (q *Queue) expireInstant(s *step) {
	for _, seq := range s.instant {
		q.core.Expire(s.now+1, seq, s.now, &s.fx)
	}
	s.instant = s.instant[:0]
}

// finish hands the step's effects on while mu is held, so that the events and
// records of one message keep their order. Dead letters are posted.
func (q *Queue) finish(s *step, path Path) {
	if len(s.fx.Settled) > 0 {
		q.emptied()
	}
	for i := range s.fx.Settled {
		x := &s.fx.Settled[i]
		if q.enqueued.chunks != nil {
			q.enqueued.drop(x.Seq)
		}
		if q.delays != nil {
			q.settleDelayed(s, x)
			continue
		}
		if (q.buries(x.Reason) || owesReceipt(x)) && !s.dropping {
			s.post(q, letter{settled: *x, set: q.set(), at: s.now, path: path, queued: true})
			s.tellSettled(q, x, path)
			continue
		}
		s.left = append(s.left, q.settleRecord(x))
		if x.Reason == queue.Expired {
			s.b.counters.expiredDropped.Add(1)
			s.noteDropped(q, x, path)
		}
		s.tellSettled(q, x, path)
	}
	if q.flow != nil {
		q.relieve(s.now)
	}
	s.fx.Reset()
	s.countPosted(q)
	s.b.feed.push(s.events)
	if !s.whole {
		s.b.store.Enqueued(s.entered)
	}
	s.b.store.Amended(s.amended)
	if !s.whole {
		s.b.store.Settled(s.left)
		s.entered, s.left = s.entered[:0], s.left[:0]
	}
	s.events, s.amended, s.dropping = s.events[:0], s.amended[:0], false
}

// buries says whether a message that leaves for this reason is dead-lettered.
func (q *Queue) buries(r queue.Reason) bool {
	if !q.set().deadLetter {
		return false
	}
	switch r {
	case queue.Expired, queue.Rejected, queue.MaxLength, queue.DeliveryLimit:
		return true
	}
	return false
}

func (q *Queue) settleRecord(x *queue.Settled) store.Settle {
	return store.Settle{Queue: q.id, Seq: uint64(x.Seq), Pos: store.Pos(x.Pos), Durable: x.Flags&queue.Durable != 0}
}

func (q *Queue) ref(seq queue.Seq, deadline int64) MessageRef {
	return MessageRef{Deadline: deadline, Queue: q.id, Seq: uint64(seq)}
}

// tell adds an event for the monitor, if there is one.
func (s *step) tell(e DeadlineEvent) {
	if s.b.feed.on.Load() {
		s.events = append(s.events, e)
	}
}

// tellSettled tells of a message that left its queue, unless Expire tells its caller.
func (s *step) tellSettled(q *Queue, x *queue.Settled, path Path) {
	if x.Tracked && !path.named() {
		s.tell(DeadlineEvent{Kind: DeadlineSettled, Ref: q.ref(x.Seq, x.ExpiresAt)})
	}
}
