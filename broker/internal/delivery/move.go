package delivery

import (
	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// MoveOutcome is the result of moving one message.
type MoveOutcome uint8

const (
	// Moved: it has left its queue and is in others.
	Moved MoveOutcome = iota
	// MoveGone: it has left its queue, is held by a consumer, or has another deadline
	// than the ref says.
	MoveGone
	// MoveUnroutable: its exchange is missing or routes it nowhere; it stays.
	MoveUnroutable
	// MoveFull: a queue that it would enter is at its limit; it stays.
	MoveFull
	// MoveBack: it would return to its own queue; it stays.
	MoveBack
)

// Move is a message that is held, as a consumer would hold it, while it enters other queues.
type Move struct {
	q   *Queue
	ref deadline.Ref
}

// Hold begins a move of the ready message that ref names; false if it is gone, held, or has
// another deadline.
func (q *Queue) Hold(ref deadline.Ref) (m Move, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Move{q, ref}, !q.deleted && q.core.Hold(queue.Seq(ref.Seq), ref.Deadline)
}

// Finish settles the message if it has entered other queues. If not, it is ready again,
// marked as redelivered.
func (m *Move) Finish(s *Transition, into []store.Enqueue) MoveOutcome {
	if len(into) == 0 {
		q := m.q
		if q.locked(s, "move", func() bool {
			q.core.Requeue(s.Now, queue.Seq(m.ref.Seq), false, &s.fx)
			q.finishLocked(s, deadline.Requeued)
			return q.serveLocked(s)
		}) {
			q.serve(s)
		}
		return MoveUnroutable
	}
	left, ok := m.settle(s)
	if !ok { // the queue has been deleted, and everything in it settled
		s.Env.Store.Enqueued(into)
		return Moved
	}
	s.Env.Store.Moved(left, into)
	s.Env.Counters.Moved.Add(1)
	return Moved
}

// settle settles the message; the caller writes its record.
func (m *Move) settle(s *Transition) (_ store.Settle, ok bool) {
	q := m.q
	q.lock(s)
	defer q.unlock(s, "move")
	if !q.core.Settle(queue.Seq(m.ref.Seq), queue.Acked, &s.fx) {
		return store.Settle{}, false
	}
	left := &s.fx.Settled[len(s.fx.Settled)-1]
	s.notifyLeftLocked(&q.messages, left, deadline.Lazy)
	record := SettleRecord(q.ID, left)
	q.enqueued.drop(left.Seq)
	s.fx.Reset()
	q.shrinkLaterLocked()
	s.Env.Feed.Push(s.Events)
	s.Events = s.Events[:0]
	return record, true
}

// Remove drops the ready message that ref names, and reports whether it was there.
func (q *Queue) Remove(ref deadline.Ref) bool {
	s := q.env.Begin()
	defer s.Done()
	q.lock(s)
	defer q.unlock(s, "move")
	dropped := q.core.Remove(queue.Seq(ref.Seq), ref.Deadline, &s.fx)
	q.finishLocked(s, deadline.Lazy)
	return dropped
}
