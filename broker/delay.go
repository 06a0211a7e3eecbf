package broker

import (
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// delayedQueue is what the queue of a virtual host's delayed messages is called
// where a name is needed. It is not among the queues: nothing can be bound to it,
// published to it or consumed from it.
const delayedQueue = "curfew.delayed"

// delays is the schedule of a virtual host's delayed messages. They stand in a
// queue of its own, in the order of publishing and with the instant they are due in
// the place of a deadline, under the exchange and key they were published with;
// so they are kept, compacted and found again after a restart as all messages
// are. At its time a message is routed as if published then: it leaves here and
// enters its queues in one record, as a dead letter does.
//
// The monitor is not told of them: being due is no expiry, and they have to leave
// on time without it. One timer of the broker waits for the earliest (delayTimer).
// Guarded by the queue's mu.
type delays struct {
	saved   atomic.Bool // the definitions on disk name its queue; not guarded
	heap    dueHeap
	stale   int            // entries of the heap whose messages were cancelled
	waiting map[string]int // by exchange
}

// add schedules a message that was just entered.
func (d *delays) add(q *Queue, at due, pos store.Pos) {
	d.heap.push(at)
	d.waiting[string(q.vh.b.store.View(pos).Exchange)]++
	if d.heap[0] == at {
		q.vh.b.delayed.rouse()
	}
}

// forget counts a message that leaves.
func (d *delays) forget(exchange string) {
	if d.waiting[exchange]--; d.waiting[exchange] == 0 {
		delete(d.waiting, exchange)
	}
}

// delayed returns the target of messages to be delayed.
func (vh *VHost) delayed() ([]target, error) {
	q := vh.waiting.Load()
	if q == nil || !q.delays.saved.Load() {
		var err error
		if q, err = vh.makeDelayed(newIncarnation()); err != nil {
			return nil, err
		}
	}
	return []target{{q, -1}}, nil
}

// makeDelayed makes the queue of delayed messages unless it is there. With an error
// it may be there and not be saved: nothing durable may wait in it before it is.
func (vh *VHost) makeDelayed(id uint64) (q *Queue, err error) {
	err = vh.mutate(func() error {
		if q = vh.waiting.Load(); q != nil {
			return nil
		}
		q = &Queue{
			vh: vh, id: id, name: delayedQueue, declared: QueueDeclare{Durable: true}, alarmIndex: notTimed,
			core: queue.New(queue.Options{MaxLength: -1, MaxBytes: -1, DeliveryLimit: -1}), delays: &delays{waiting: map[string]int{}},
		}
		q.settings.Store(&settings{ttlMillis: -1})
		vh.b.addQueueID(q)
		vh.waiting.Store(q)
		vh.define(keyOf(delayedKind, vh.name), q.definition())
		return nil
	})
	if err == nil {
		q.delays.saved.Store(true)
	}
	return q, err
}

// settleDelayed hands on a message that leaves the queue of delayed ones: due, or
// cancelled.
func (q *Queue) settleDelayed(s *step, x *queue.Settled) {
	q.delays.forget(string(s.b.store.View(store.Pos(x.Pos)).Exchange))
	if x.Reason == queue.Expired {
		s.post(q, letter{settled: *x, set: q.set(), at: s.now, path: Scheduled, queued: true})
		return
	}
	s.left = append(s.left, q.settleRecord(x))
}

// activate routes a delayed message whose time has come, as if it was published now. One
// that no queue is bound for is parked like a dead letter: nobody is there to be told that it
// is unroutable. false: it has to wait for memory.
func (s *step) activate(x *crossing, at int) bool {
	src := s.b.store.View(store.Pos(x.settled.Pos))
	p, err := amqp.ParseProperties(src.Properties, stored)
	if err != nil { // it was read when it came
		s.b.log.Error("delayed message is unreadable and dropped", x.from.fields(err)...)
		return true
	}
	if p.Headers != nil {
		delayDone(p.Headers)
	}
	t := &s.turns
	t.props = p.Append(t.props[:0])
	m := store.Message{Exchange: src.Exchange, RoutingKey: src.RoutingKey, Properties: t.props, Body: src.Body}
	view, _ := amqp.ViewProperties(m.Properties)
	has := marksOf(view.Headers)
	it := item{ttlMillis: -1}
	targets, err := t.routes.find(x.from.vh, m.Exchange, m.RoutingKey, byClient, messageHeaders{raw: view.Headers}, has&keyMarks != 0)
	if s.scarce(targets) {
		return false
	}
	if err != nil || len(targets) == 0 {
		if !x.tried {
			s.b.counters.unroutable.Add(1)
		}
		if targets = s.park(x); len(targets) == 0 {
			return true
		}
		x.from.tellUnroutable(&m)
		recordDeath(&p, death{
			queue: delayedQueue, reason: "unroutable", at: s.b.wallSeconds(x.at),
			exchange: string(src.Exchange), keys: originalKeys(src.RoutingKey, p.Headers, false),
		}, false)
		t.props = p.Append(t.props[:0])
		m.Properties = t.props
		it.message.Flags = queue.Died
		if p.DeliveryMode == 2 {
			it.message.Flags |= queue.Durable
		}
		describe(s, x, p.MessageID, string(m.RoutingKey), targets)
		if x.about != nil {
			x.about.exchange = string(m.Exchange)
		}
	} else {
		it.read(&view, has, len(m.Body)) // it was checked when it came
		it.message.ExpiresAt, _ = s.b.instantOf(p.Headers, expiresAtHeader, s.now)
	}
	s.send(x, at, targets, &it, m)
	return true
}

// tellUnroutable logs the first delayed message of the virtual host that is parked.
func (q *Queue) tellUnroutable(m *store.Message) {
	if !q.boundTold.Swap(true) {
		q.vh.b.log.Warn("delayed messages that no queue is bound for when they are due are parked in "+UndeliverableQueue,
			zap.String("vhost", q.vh.name), zap.ByteString("exchange", m.Exchange), zap.ByteString("routing_key", m.RoutingKey))
	}
}

// delayTimer releases the delayed messages of all virtual hosts when they are due:
// one goroutine, one timer.
type delayTimer struct {
	b    *Broker
	wake chan struct{}
}

func (t *delayTimer) init(b *Broker) { t.b, t.wake = b, make(chan struct{}, 1) }

// rouse has the timer look again: something is due earlier than it knows.
func (t *delayTimer) rouse() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// run waits for the earliest message. A minute is the longest it sleeps, so that a
// machine that was suspended is noticed. It ends with the broker.
func (t *delayTimer) run() {
	timer := time.NewTimer(time.Minute)
	defer timer.Stop()
	for {
		timer.Reset(t.release())
		select {
		case <-timer.C:
		case <-t.wake:
		case <-t.b.quit:
			return
		}
	}
}

// release lets go of all that is due and says how long nothing will be.
func (t *delayTimer) release() time.Duration {
	wait := time.Minute
	for _, vh := range t.b.VHosts() {
		q := vh.waiting.Load()
		if q == nil {
			continue
		}
		next := q.releaseDue()
		for next == 0 {
			next = q.releaseDue()
		}
		wait = min(wait, next)
	}
	return wait
}

// releaseDue routes what is due, so much as is done under one lock, and says in how
// long the next is.
func (q *Queue) releaseDue() time.Duration {
	s := q.vh.b.hurry()
	defer s.done()
	q.lock(s)
	defer q.mu.Unlock()
	heap := &q.delays.heap
	for n := 0; len(*heap) > 0 && (*heap)[0].at <= s.now; n++ {
		if n == expireAtOnce {
			q.finish(s, Lazy)
			return 0
		}
		d := heap.pop()
		if outcome, _ := q.core.Expire(s.now, d.seq, d.at, &s.fx); outcome == queue.Gone {
			q.delays.stale--
		}
	}
	q.finish(s, Lazy)
	if len(*heap) == 0 {
		return time.Minute
	}
	return time.Duration((*heap)[0].at-s.now) * time.Microsecond
}

// DelayedMessage is a message that waits to be enqueued.
type DelayedMessage struct {
	Ref        MessageRef // Deadline is when it is due
	Exchange   string
	RoutingKey string
	Properties []byte // raw property list
	Bytes      uint32 // of the body
}

// Delayed lists up to most delayed messages in the order of publishing, from a
// sequence number on (0: the first); next is where to go on, 0 at the end.
func (vh *VHost) Delayed(from uint64, most int) (page []DelayedMessage, next uint64) {
	q := vh.waiting.Load()
	if q == nil {
		return nil, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.core.Each(queue.Seq(from), func(seq queue.Seq, m queue.Message, _ queue.State) bool {
		if len(page) == most {
			next = uint64(seq)
			return false
		}
		page = append(page, q.delayedMessage(seq, &m))
		return true
	})
	return page, next
}

// leaving lists those that are due and on their way, up to most from a number on (0: the
// first); next is where to go on, 0 at the end.
func (vh *VHost) leaving(from uint64, most int) (page []DelayedMessage, next uint64) {
	q := vh.waiting.Load()
	if q == nil {
		return nil, 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.letters
	for number, end := max(from, l.passed), l.passed+uint64(l.len()); number < end; number++ {
		if len(page) == most {
			return page, number
		}
		x := &l.at(number).settled
		page = append(page, q.delayedMessage(x.Seq, &x.Message))
	}
	return page, 0
}

// delayedMessage copies one out of the store. Called with q.mu held.
func (q *Queue) delayedMessage(seq queue.Seq, m *queue.Message) DelayedMessage {
	src := q.vh.b.store.View(store.Pos(m.Pos))
	return DelayedMessage{
		Ref: q.ref(seq, m.ExpiresAt), Exchange: string(src.Exchange), RoutingKey: string(src.RoutingKey),
		Properties: append([]byte(nil), src.Properties...), Bytes: m.Bytes,
	}
}

// delayedMessages is how many wait in all virtual hosts.
func (b *Broker) delayedMessages() (n int) {
	for _, vh := range b.VHosts() {
		if q := vh.waiting.Load(); q != nil {
			ready, _, _ := q.Counts()
			n += ready
		}
	}
	return n
}

// DelayedFor is how many messages to an exchange are delayed.
func (vh *VHost) DelayedFor(exchange string) int {
	q := vh.waiting.Load()
	if q == nil {
		return 0
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.delays.waiting[exchange]
}

// CancelDelayed drops a delayed message; false if it is gone: enqueued or
// cancelled.
func (vh *VHost) CancelDelayed(ref MessageRef) bool {
	q := vh.waiting.Load()
	if q == nil || q.id != ref.Queue {
		return false
	}
	s := vh.b.step()
	defer s.done()
	q.lock(s)
	defer q.mu.Unlock()
	if !q.core.Remove(queue.Seq(ref.Seq), ref.Deadline, &s.fx) {
		return false
	}
	q.finish(s, Lazy)
	q.delays.cancelled(q.core)
	return true
}

// staleKept is how many entries of cancelled messages a schedule may hold, beside
// half its length.
const staleKept = 1024

// cancelled counts an entry whose message is gone, and clears them out when they
// are many.
func (d *delays) cancelled(core *queue.Queue) {
	if d.stale++; d.stale <= staleKept || d.stale <= len(d.heap)/2 {
		return
	}
	d.heap, d.stale = d.heap[:0], 0
	core.Each(0, func(seq queue.Seq, m queue.Message, _ queue.State) bool {
		d.heap.push(due{m.ExpiresAt, seq})
		return true
	})
}
