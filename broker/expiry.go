package broker

import (
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Expiry is the record of one message that expired (Options.OnExpired).
type Expiry struct {
	VHost, Queue string
	Ref          MessageRef
	At           int64 // Unix µs: when it had left its queue, and stood where it went
	Path         Path
	Action       Action
	MessageID    []byte // the property; nil: it has none
	Trace        TraceContext
	// Exchange, RoutingKey and To say where a dead letter went: to which exchange, with
	// which key, into which queues.
	Exchange   string
	RoutingKey []byte
	To         []string
}

// expiries gathers the records of a step. Slices of ids and names stay valid when these
// grow.
type expiries struct {
	records []Expiry
	ids     []byte
	names   []string
	held    []held
}

// held is a message that is kept in the store until its record is complete: its
// properties are not read under a queue's lock.
type held struct {
	record int
	pos    store.Pos
}

// noteDropped records a message that expires and goes nowhere; its queue's lock is
// held.
func (s *step) noteDropped(q *Queue, x *queue.Settled, path Path) {
	if s.b.opts.OnExpired == nil {
		return
	}
	pos := store.Pos(x.Pos)
	s.b.store.Retain(pos, 1)
	e := &s.expiries
	e.held = append(e.held, held{len(e.records), pos})
	e.records = append(e.records, Expiry{
		VHost: q.vh.name, Queue: q.name, Ref: q.ref(x.Seq, x.ExpiresAt), At: s.now, Path: path, Action: Dropped,
	})
}

// noteBuried records a message that expired when it is where it goes.
func (s *step) noteBuried(d *deadLetter) {
	if s.b.opts.OnExpired == nil {
		return
	}
	s.expiries.records = append(s.expiries.records, Expiry{
		VHost: d.from.vh.name, Queue: d.from.name, Ref: d.from.ref(d.settled.Seq, d.settled.ExpiresAt), At: s.now, Path: d.path, Action: d.action,
		MessageID: d.id, Trace: d.trace, Exchange: d.exchange, RoutingKey: d.key, To: d.to,
	})
}

// recorded says whether a record is made of a dead letter: of one that is tried again
// there is one.
func (s *step) recorded(d *deadLetter) bool {
	return s.b.opts.OnExpired != nil && d.settled.Reason == queue.Expired && !d.tried
}

// describe keeps what the record of a dead letter will say of it: its id and where it
// goes.
func describe[T string | []byte](s *step, d *deadLetter, id, key T, targets []target) {
	if !s.recorded(d) {
		return
	}
	e := &s.expiries
	from := len(e.names)
	for _, t := range targets {
		e.names = append(e.names, t.queue.name)
	}
	d.id = keep(e, id)
	d.exchange, d.key, d.to = d.set.dlx, keep(e, key), e.names[from:len(e.names):len(e.names)]
}

// keep copies text that the record refers to.
func keep[T string | []byte](e *expiries, text T) []byte {
	if len(text) == 0 {
		return nil
	}
	from := len(e.ids)
	e.ids = append(e.ids, text...)
	return e.ids[from:len(e.ids):len(e.ids)]
}

// report hands the records over. No lock is held.
func (s *step) report() {
	e := &s.expiries
	for _, h := range e.held {
		view, err := amqp.ViewProperties(s.b.store.View(h.pos).Properties)
		if err != nil {
			continue
		}
		r := &e.records[h.record]
		if len(view.MessageID) > 0 {
			r.MessageID = view.MessageID
		}
		if s.b.opts.TraceExpired {
			r.Trace = traceContext(view.Headers)
		}
	}
	s.b.opts.OnExpired(e.records)
	for _, h := range e.held {
		s.b.store.Release(h.pos)
	}
	clear(e.records)
	clear(e.names)
	e.records, e.ids, e.names, e.held = e.records[:0], e.ids[:0], e.names[:0], e.held[:0]
}
