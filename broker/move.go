package broker

import (
	"errors"

	"curfew/broker/access"
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// MoveOutcome says what became of a message that was to be moved.
type MoveOutcome uint8

const (
	// Moved: it has left its queue and stands in others.
	Moved MoveOutcome = iota
	// MoveGone: it has left its queue, is held by a consumer, or has another deadline
	// than the ref says.
	MoveGone
	// MoveUnroutable: its exchange is missing or leads nowhere; it stays.
	MoveUnroutable
	// MoveFull: a queue that it would go to is at its limit; it stays.
	MoveFull
	// MoveBack: it would come back to its own queue; it stays.
	MoveBack
)

// Move publishes m and takes the ready message that ref names out of its queue, as
// one: after a crash both have happened or neither has, once a Commit that follows has
// called back or not. m is what the message is to be from now on, usually the message
// itself with other headers; died says that the death headers in it are the broker's
// own, so that the next death adds to them. The message stays as it was unless it was
// Moved. A property user-id is not checked: it was when the message came. Errors are
// Add's, and nothing was done. A message that waits for Flush is not touched.
func (p *Publisher) Move(ref MessageRef, m *Publication, died bool) (MoveOutcome, error) {
	q := p.vh.b.queueByID(ref.Queue)
	if q == nil || q.delays != nil {
		return MoveGone, nil
	}
	it := item{ttlMillis: -1}
	targets, err := p.destine(m, &it)
	if err != nil {
		return 0, err
	}
	if died {
		it.message.Flags |= queue.Died
	}
	if outcome := admits(q, targets, it.message.Bytes); outcome != Moved {
		return outcome, nil
	}
	return p.move(q, ref, m, &it, targets)
}

// CanMove says what Move would, without doing it.
func (p *Publisher) CanMove(ref MessageRef, m *Publication) (MoveOutcome, error) {
	q := p.vh.b.queueByID(ref.Queue)
	if q == nil || q.delays != nil {
		return MoveGone, nil
	}
	it := item{ttlMillis: -1}
	targets, err := p.destine(m, &it)
	if err != nil {
		return 0, err
	}
	return admits(q, targets, it.message.Bytes), nil
}

// destine finds the queues of a message to be moved and reads what they have to know
// of it; none where the exchange is missing.
func (p *Publisher) destine(m *Publication, it *item) ([]target, error) {
	view, err := amqp.ViewProperties(m.Properties)
	if err == nil {
		err = p.rights.publish(m.Exchange)
	}
	if err == nil {
		err = p.rights.topic(access.Write, p.vh, m.Exchange, m.RoutingKey)
	}
	if err != nil {
		return nil, err
	}
	has := marksOf(view.Headers)
	due, err := p.check(m, &view, has, it)
	if err != nil {
		return nil, err
	}
	targets, err := p.routes.find(p.vh, m.Exchange, m.RoutingKey, byTool, messageHeaders{raw: view.Headers}, has&keyMarks != 0)
	if e, ok := errors.AsType[*amqp.Exception](err); ok && e.Code == amqp.NotFound {
		return nil, nil
	}
	if err == nil && due != 0 && len(targets) > 0 {
		it.message.ExpiresAt = due
		return p.vh.delayed()
	}
	return targets, err
}

// admits says whether a message may go from q to the targets. Another may take the
// last place in one meanwhile: then it is one over its limit, as with dead letters.
func admits(q *Queue, targets []target, bytes uint32) MoveOutcome {
	if len(targets) == 0 {
		return MoveUnroutable
	}
	for _, t := range targets {
		if t.queue == q {
			return MoveBack
		}
		if t.queue.atLimit(bytes) {
			return MoveFull
		}
	}
	return Moved
}

// atLimit says whether one more message would have the queue refuse or drop one.
func (q *Queue) atLimit(bytes uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	o, r := q.set().core, &q.retained
	return o.MaxLength >= 0 && int64(q.core.Ready()+len(r.line)) >= o.MaxLength ||
		o.MaxBytes >= 0 && q.core.ReadyBytes()+r.bytes+int64(bytes) > o.MaxBytes
}

// move holds the message as a consumer would while its successor enters the targets,
// no two of which are locked at a time; then one record says both. If none took it,
// all having been deleted since they were found, it goes back.
func (p *Publisher) move(q *Queue, ref MessageRef, m *Publication, it *item, targets []target) (MoveOutcome, error) {
	b := p.vh.b
	pos, err := b.store.Put(store.Message{
		Exchange: m.Exchange, RoutingKey: m.RoutingKey, Properties: m.Properties, Body: m.Body,
	}, anyPersists(targets, it.message.Flags), 1+len(targets))
	if err != nil {
		return 0, err
	}
	if !q.hold(ref) {
		for range 1 + len(targets) {
			b.store.Release(pos)
		}
		return MoveGone, nil
	}
	s := b.step()
	defer s.done()
	t := &s.turns
	t.crossings = append(t.crossings[:0], crossing{from: q})
	it.message.Pos, it.move = uint64(pos), 0
	t.batch.addAll(targets, it)
	t.batch.flush(s)
	outcome := q.letGo(s, ref, t.crossings[0].into)
	b.store.Release(pos)
	return outcome, nil
}

func (q *Queue) hold(ref MessageRef) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.deleted && q.core.Hold(queue.Seq(ref.Seq), ref.Deadline)
}

// letGo settles a held message that has entered other queues, or has it ready again if
// it has not, marked as redelivered.
func (q *Queue) letGo(s *step, ref MessageRef, into []store.Enqueue) MoveOutcome {
	if len(into) == 0 {
		q.giveBack(s, ref)
		return MoveUnroutable
	}
	left, ok := q.release(s, ref)
	if !ok { // the queue was deleted meanwhile, and all in it settled
		s.b.store.Enqueued(into)
		return Moved
	}
	s.b.store.Moved(left, into)
	s.b.counters.moved.Add(1)
	return Moved
}

func (q *Queue) giveBack(s *step, ref MessageRef) {
	q.lock(s)
	defer q.mu.Unlock()
	q.core.Requeue(s.now, queue.Seq(ref.Seq), false, &s.fx)
	q.finish(s, Requeued)
	q.dispatch(s)
	q.finish(s, Lazy)
}

// release settles a held message; its record is the caller's to write.
func (q *Queue) release(s *step, ref MessageRef) (_ store.Settle, ok bool) {
	q.lock(s)
	defer q.mu.Unlock()
	if !q.core.Ack(queue.Seq(ref.Seq), &s.fx) {
		return store.Settle{}, false
	}
	left := &s.fx.Settled[len(s.fx.Settled)-1]
	s.tellSettled(q, left, Lazy)
	record := q.settleRecord(left)
	q.enqueued.drop(left.Seq)
	s.fx.Reset()
	q.emptied()
	s.b.feed.push(s.events)
	s.events = s.events[:0]
	return record, true
}

// Remove drops the ready messages that refs name, as a purge would, and returns how
// many: those that are gone, held or have another deadline are passed over. It is
// journaled; see Commit.
func (b *Broker) Remove(refs []MessageRef) (removed int) {
	for _, ref := range refs {
		if q := b.queueByID(ref.Queue); q != nil && q.delays == nil && q.drop(ref) {
			removed++
		}
	}
	return removed
}

func (q *Queue) drop(ref MessageRef) bool {
	s := q.vh.b.step()
	defer s.done()
	q.lock(s)
	defer q.mu.Unlock()
	dropped := q.core.Remove(queue.Seq(ref.Seq), ref.Deadline, &s.fx)
	q.finish(s, Lazy)
	return dropped
}

// Tails returns, by priority, the last message that entered the queue, be it gone: what
// comes later has a higher Seq of its priority. 0: none did.
func (q *Queue) Tails() []queue.Seq {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.core.Tails()
}

// Ref names a message that Browse showed.
func (q *Queue) Ref(x *Browsed) MessageRef { return q.ref(x.Seq, x.Deadline) }

// DeadLettersTo is where the queue's dead letters go; false: it has no dead-letter
// exchange. key is "" where each goes by its own.
func (q *Queue) DeadLettersTo() (exchange, key string, ok bool) {
	set := q.set()
	return set.dlx, set.dlk, set.deadLetter
}

// Destinations are the queues that a message without headers would reach through an
// exchange by a key, the internal ones too. None where it is missing. To ask is no use of the
// exchange (x-auto-delete-on-idle).
func (vh *VHost) Destinations(exchange, key string) (names []string) {
	var r routes
	found, err := r.find(vh, []byte(exchange), []byte(key), byNobody, messageHeaders{}, false)
	if err != nil {
		return nil
	}
	for _, t := range found {
		names = append(names, t.queue.name)
	}
	return names
}
