package broker

import (
	"slices"

	"curfew/broker/queue"
	"curfew/broker/store"
)

const (
	// retryFirst is how long dead letters that could not go on wait, in µs. It doubles with
	// each try that gets none of them on, up to retryLast.
	retryFirst = second
	retryLast  = 4 * second
	// retryAtOnce is how many of a queue are tried then. When one goes through, the
	// next follow at once.
	retryAtOnce = 256
)

// retained are the dead letters of a queue with x-dead-letter-strategy
// at-least-once that not all of their targets took: a target was full and rejects
// (x-overflow), was deleted meanwhile, or the exchange is missing or leads nowhere
// (RabbitMQ: Quorum Queues, At-least-once dead lettering). They have left the
// queue, count against its limits, and are tried again until all have them. In
// the journal they are in their queue still: after a restart they are ready again,
// and those that expired expire again. So a target may get one twice, and never
// none. With the default strategy a full target takes a dead letter in, and one
// without a target is parked. They go where the queue's dead letters go when they
// are tried: a policy that mends the exchange frees them, one that takes it away
// leaves them where they were bound for.
type retained struct {
	line    []*letter // in the order they are tried
	bySeq   map[queue.Seq]*letter
	bytes   int64
	retryAt int64 // Unix µs; 0 while there are none
	pause   int64 // µs between the last try and the next
}

// retain journals where a dead letter that not all targets took has arrived, and
// has its source keep it.
func (s *step) retain(x *crossing) {
	s.b.store.Enqueued(x.into)
	x.action = Retained
	if !x.from.retain(s, x) {
		x.action = Dropped
		s.b.counters.deadLettersLost.Add(1)
		s.b.store.Settled([]store.Settle{x.from.settleRecord(&x.settled)})
	}
}

// retain keeps a dead letter for another try; false if its queue is deleted.
func (q *Queue) retain(s *step, x *crossing) bool {
	q.lock(s)
	defer q.mu.Unlock()
	if q.deleted {
		return false
	}
	kept := x.letter
	kept.tried = true
	for _, e := range x.into {
		if e.Pos != x.receipt {
			kept.done = append(slices.Clip(kept.done), e.Queue)
		}
	}
	kept.unsaved = x.unsaved && len(kept.done) > 0 // then the journal keeps the original, whatever the next try does
	r := &q.retained
	if r.bySeq == nil {
		r.bySeq = map[queue.Seq]*letter{}
	}
	r.line = append(r.line, &kept)
	r.bySeq[kept.settled.Seq] = &kept
	r.bytes += int64(kept.settled.Bytes)
	if r.retryAt == 0 {
		r.pause = max(r.pause, retryFirst)
		r.retryAt = s.now + r.pause
		q.vh.b.alarms.add(q, r.retryAt)
	}
	return true
}

// retry puts the first of them in line again, if it is time. Called with mu held.
func (q *Queue) retry(s *step) {
	r := &q.retained
	if len(r.line) == 0 || r.retryAt > s.now {
		return
	}
	r.pause = min(2*r.pause, retryLast)
	n := min(len(r.line), retryAtOnce)
	set := q.set()
	for _, d := range r.line[:n] {
		delete(r.bySeq, d.settled.Seq)
		r.bytes -= int64(d.settled.Bytes)
		if set.deadLetter {
			d.set = set
		}
		s.post(q, *d)
	}
	r.line = slices.Delete(r.line, 0, n)
	if r.retryAt = 0; len(r.line) > 0 {
		r.retryAt = s.now + r.pause
	}
}

// retrySoon lets the others follow one that went through.
func (q *Queue) retrySoon(s *step) {
	q.lock(s)
	defer q.mu.Unlock()
	q.retryNow(s.now)
}

// retryNow has those that wait be tried at once. Called with mu held.
func (q *Queue) retryNow(now int64) {
	q.retained.pause = retryFirst
	if len(q.retained.line) > 0 {
		q.retained.retryAt = now
		q.vh.b.alarms.add(q, now)
	}
}

// releaseRetained settles them all: the queue is deleted. Called with mu held.
func (q *Queue) releaseRetained(s *step) {
	for _, d := range q.retained.line {
		s.left = append(s.left, q.settleRecord(&d.settled))
	}
	q.retained = retained{}
}

// Retained is how many dead letters wait to be tried again.
func (q *Queue) Retained() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.retained.line)
}

// relocate notes that the store keeps one of them at another position. Called
// with mu held.
func (r *retained) relocate(seq queue.Seq, old, moved uint64) (store.Terms, bool) {
	d := r.bySeq[seq]
	if d == nil || d.settled.Pos != old {
		return store.Terms{}, false
	}
	d.settled.Pos = moved
	return d.terms(), true
}

// untried leaves out the targets that have the dead letter already.
func (l *letter) untried(targets []target) []target {
	return slices.DeleteFunc(targets, func(t target) bool { return slices.Contains(l.done, t.queue.id) })
}

// accepting leaves out the targets that would refuse the dead letter now: nothing is
// written for them.
func (x *crossing) accepting(targets []target) []target {
	return slices.DeleteFunc(targets, func(t target) bool {
		full := t.queue.refuses(x.settled.Bytes)
		x.refused = x.refused || full
		return full
	})
}

// refuses says whether the queue would turn a message of so many bytes away.
func (q *Queue) refuses(bytes uint32) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.deleted || q.full(bytes)
}
