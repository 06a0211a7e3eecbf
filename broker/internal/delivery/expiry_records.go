package delivery

import (
	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/message"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// expiries gathers the records of a transition. Slices of IDs and Names stay valid when these
// grow.
type expiries struct {
	Records []deadline.Expiry
	Deaths  []deadline.Expiry // of messages that did not expire
	IDs     []byte
	Names   []string
	pinned  []pinned
}

// pinned is a message that is kept in the store until its record is complete: its properties are
// not read under a queue's lock.
type pinned struct {
	record int
	pos    store.Pos
}

// recordDroppedLocked records a message that expires and is dropped.
func (s *Transition) recordDroppedLocked(q *messages, x *queue.Settled, path deadline.Path) {
	if !s.Env.Expiries.Watched() {
		return
	}
	e := &s.Expiries
	if s.Env.Expiries.Needs() >= deadline.WithMessage {
		pos := store.Pos(x.Pos)
		s.Env.Store.Retain(pos, 1)
		e.pinned = append(e.pinned, pinned{len(e.Records), pos})
	}
	e.Records = append(e.Records, deadline.Expiry{
		VHost: q.vhost, Queue: q.Name, Ref: q.refOf(x.Seq, x.ExpiresAt), Arrived: s.Now, Path: path, Action: deadline.Dropped,
	})
}

// CopyText copies text into e, so that a record can refer to it.
func CopyText[T string | []byte](e *expiries, text T) []byte {
	if len(text) == 0 {
		return nil
	}
	from := len(e.IDs)
	e.IDs = append(e.IDs, text...)
	return e.IDs[from:len(e.IDs):len(e.IDs)]
}

// Report publishes the records on the stream of expiries. No lock may be held.
func (s *Transition) Report() {
	e := &s.Expiries
	for _, h := range e.pinned {
		view, err := amqp.ViewProperties(s.Env.Store.View(h.pos).Properties)
		if err != nil {
			continue
		}
		r := &e.Records[h.record]
		if len(view.MessageID) > 0 {
			r.MessageID = view.MessageID
		}
		if s.Env.Expiries.Needs() >= deadline.WithTrace {
			r.Trace = message.TraceOf(view.Headers)
		}
	}
	ahead := s.Env.Clock.Ahead()
	for i := range e.Records {
		e.Records[i].ClockAhead = ahead
	}
	for i := range e.Deaths {
		e.Deaths[i].ClockAhead = ahead
	}
	s.Env.Expiries.Publish(e.Records)
	s.Env.Expiries.PublishDeaths(e.Deaths)
	for _, h := range e.pinned {
		s.Env.Store.Release(h.pos)
	}
	clear(e.Records)
	clear(e.Deaths)
	clear(e.Names)
	e.Deaths = e.Deaths[:0]
	e.Records, e.IDs, e.Names, e.pinned = e.Records[:0], e.IDs[:0], e.Names[:0], e.pinned[:0]
}
