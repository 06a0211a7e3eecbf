package simulation

import (
	"slices"

	"curfew/broker"
	"curfew/broker/deadline"
)

// arrival is an entry on its way into a queue.
type arrival struct {
	entry  *entry
	number int         // of its publish within the batch
	from   *deadLetter // set if it is a dead letter
}

// arrivals groups entries by queue, in the order in which the queues are first named.
type arrivals struct {
	order []*modelQueue
	of    map[*modelQueue][]arrival
}

func (a *arrivals) add(q *modelQueue, x arrival) {
	if a.of == nil {
		a.of = map[*modelQueue][]arrival{}
	}
	if _, known := a.of[q]; !known {
		a.order = append(a.order, q)
	}
	x.entry.queue = q
	a.of[q] = append(a.of[q], x)
}

// publish predicts a batch of publishes. It returns the numbers of the publishes that a
// full queue refuses.
func (m *model) publish(batch []publication) (refused []int) {
	var a arrivals
	for i := range batch {
		p := &batch[i]
		m.count.published++
		targets := m.route(p.exchange, p.keys())
		if len(targets) == 0 {
			m.count.unroutable++
		}
		for _, q := range targets {
			a.add(q, arrival{entry: p.entry(), number: i})
		}
	}
	refused = m.arrive(&a)
	m.routeDeadLetters(false)
	slices.Sort(refused)
	return slices.Compact(refused)
}

// arrive puts entries into their queues and offers them to consumers.
func (m *model) arrive(a *arrivals) (refused []int) {
	for _, q := range a.order {
		var entered []*entry
		for _, x := range a.of[q] {
			if m.refuses(q, x) {
				refused = append(refused, x.number)
				continue
			}
			m.enter(q, x.entry)
			entered = append(entered, x.entry)
			if q.limited() {
				m.dispatch(q)
				m.trim(q)
			}
		}
		m.dispatch(q)
		for _, e := range entered { // a message for this instant that was not taken
			if e.instant && e.state == ready {
				m.settle(e, expired, deadline.Lazy)
			}
		}
	}
	return refused
}

// refuses reports whether the queue refuses a publish that would overflow it. It never
// refuses a dead letter.
func (m *model) refuses(q *modelQueue, x arrival) bool {
	overflows := q.exceeded(q.count(ready)+1, q.readyBytes()+int64(len(x.entry.body)))
	if x.from != nil || q.overflow == "" || q.overflow == "drop-head" || !overflows {
		return false
	}
	m.all = append(m.all, x.entry)
	m.count.refused++
	if q.overflow == "reject-publish-dlx" && q.deadLetters {
		x.entry.state, x.entry.end = gone, maxlen
		x.entry.queue = q
		m.queueDeadLetter(&deadLetter{entry: x.entry, at: m.nowAt()})
	} else {
		x.entry.state, x.entry.end = gone, refused
	}
	return true
}

// enter sets the deadline, which rounding may make later but never earlier.
func (m *model) enter(q *modelQueue, e *entry) {
	m.all = append(m.all, e)
	ttl, until := q.ttlMillis, deadline.Instant(e.expiresAt())
	if until != 0 && m.rules.messageFirst {
		ttl = -1
	}
	if own, has := e.expiration(); has && (ttl < 0 || own < ttl || m.rules.messageFirst) {
		ttl = own
	}
	if ttl >= 0 {
		e.dueNanos = m.now + ttl*millisecond
		e.deadline = m.stampAt() + deadline.Instant(ttl*1000)
	}
	if e.instant = ttl == 0; e.instant {
		e.dueNanos, e.deadline = m.now, m.nowAt()
	}
	if until != 0 && until <= m.nowAt() {
		e.dueNanos, e.deadline, e.instant, e.stale = m.now, m.nowAt(), true, true
	} else if until != 0 && (ttl < 0 || until < e.deadline) {
		e.dueNanos, e.deadline = int64(until)*microsecond, until
	}
	q.put(e)
	if e.deadline != 0 && !e.instant {
		m.reportEvent(e, deadline.Event{Kind: deadline.Enqueued})
	}
}

// trim drops messages from the head until the queue is within its limits.
func (m *model) trim(q *modelQueue) {
	if q.overflow != "" && q.overflow != "drop-head" {
		return
	}
	for q.exceeded(q.count(ready), q.readyBytes()) && q.count(ready) > 0 {
		m.settle(q.head(), maxlen, deadline.Lazy)
	}
}

// dispatch lets the consumers take messages while they have credit. The broker chooses
// which consumer takes which message.
func (m *model) dispatch(q *modelQueue) {
	for m.credit(q) > 0 && q.head() != nil {
		if !m.take(q) {
			return
		}
		m.spent[q]++
	}
}

// take delivers the first entry that is not due. Due entries before it expire.
func (m *model) take(q *modelQueue) bool {
	for e := q.head(); e != nil; e = q.head() {
		if !m.deliverable(e) {
			m.settle(e, expired, deadline.Lazy)
			continue
		}
		if q.highTaken++; q.highTaken > 2 {
			q.highTaken = 0
		}
		e.state = leaving
		m.count.delivered++
		if m.taken[q] == nil {
			m.from = append(m.from, q)
		}
		m.taken[q] = append(m.taken[q], taken{e, q.count(ready)})
		return true
	}
	return false
}

// get predicts a basic.get.
func (m *model) get(q *modelQueue) bool {
	m.use(q)
	ok := m.take(q)
	m.routeDeadLetters(false)
	return ok
}

// handed records a delivery.
func (m *model) handed(e *entry, noAck bool) {
	if noAck {
		m.settle(e, acked, 0)
		return
	}
	e.state = held
}

// settles predicts the end of deliveries. It ignores entries that are not unacked.
func (m *model) settles(q *modelQueue, how broker.Settlement, entries []*entry) {
	for _, e := range entries {
		if e.state != held {
			continue
		}
		switch {
		case how == broker.Ack:
			m.settle(e, acked, 0)
		case how == broker.Reject:
			m.settle(e, rejected, deadline.Requeued)
		case m.due(e):
			m.settle(e, expired, deadline.Requeued)
		default:
			m.requeue(e)
		}
	}
	m.dispatch(q)
	m.trim(q)
	m.routeDeadLetters(false)
}

// requeue puts an entry back in its old place, unless it has failed too often.
func (m *model) requeue(e *entry) {
	e.failed++
	if e.queue.overDelivered(e.failed) {
		m.settle(e, undelivered, deadline.Requeued)
		return
	}
	e.state, e.redelivered = ready, true
}

// expire predicts the answers to a request to expire messages.
func (m *model) expire(refs []deadline.Ref, path deadline.Path) []deadline.Answer {
	out := make([]deadline.Answer, len(refs))
	for i, ref := range refs {
		e := m.find(ref)
		switch {
		case e == nil || ref.Deadline == 0:
			out[i].Outcome = deadline.Gone
		case !m.due(e):
			out[i] = deadline.Answer{Outcome: deadline.NotDue, At: e.deadline}
		case e.state == held:
			out[i].Outcome = deadline.Held
		default:
			out[i] = deadline.Answer{Outcome: deadline.Expired, At: m.nowAt()}
			m.settle(e, expired, path)
		}
	}
	m.routeDeadLetters(true)
	return out
}

// track predicts which of the messages are still queued, and marks those.
func (m *model) track(refs []deadline.Ref) (kept []deadline.Ref) {
	for _, ref := range refs {
		if e := m.find(ref); e != nil {
			e.tracked = true
			kept = append(kept, ref)
		}
	}
	return kept
}

// find returns the entry with that identity and deadline, if it is queued.
func (m *model) find(ref deadline.Ref) *entry {
	if q := m.byID[ref.Queue]; q != nil {
		for _, e := range q.entries {
			if uint64(e.seq) == ref.Seq && e.deadline == ref.Deadline {
				return e
			}
		}
	}
	return nil
}
