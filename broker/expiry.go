package broker

import (
	"curfew/broker/amqp"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Expiry is the record of one message that expired, or of a delayed one that could go
// nowhere when it was due (Path Scheduled).
type Expiry struct {
	VHost, Queue string
	Ref          MessageRef
	At           int64 // Unix µs: when its dead letter stood where it goes; without one, when it left its queue
	Path         Path
	Action       Action
	ahead        int64 // µs by which At and Ref.Deadline, of the broker's clock, are ahead of the wall clock

	// What Options.OnExpired alone is told:

	MessageID []byte // the property; nil: it has none
	Trace     TraceContext
	// Exchange, RoutingKey and To say where a dead letter went: to which exchange, with
	// which key, into which queues.
	Exchange   string
	RoutingKey []byte
	To         []string
}

// Wall returns the deadline and At as people are told them, Unix µs of the wall clock.
func (e *Expiry) Wall() (deadline, at int64) { return e.Ref.Deadline - e.ahead, e.At - e.ahead }

// WatchExpiries has fn told of every message that expires from now on, as
// Options.OnExpired is, in its stead or beside it. There is one such watcher.
func (b *Broker) WatchExpiries(fn func([]Expiry)) { b.watcher.Store(&fn) }

// expiryWatched says whether somebody is told of expiries.
func (b *Broker) expiryWatched() bool { return b.opts.OnExpired != nil || b.watcher.Load() != nil }

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
	if !s.b.expiryWatched() {
		return
	}
	e := &s.expiries
	if s.b.opts.OnExpired != nil {
		pos := store.Pos(x.Pos)
		s.b.store.Retain(pos, 1)
		e.held = append(e.held, held{len(e.records), pos})
	}
	e.records = append(e.records, Expiry{
		VHost: q.vh.name, Queue: q.name, Ref: q.ref(x.Seq, x.ExpiresAt), At: s.now, Path: path, Action: Dropped,
	})
}

// noteArrived records a message that expired when it is where it goes.
func (s *step) noteArrived(x *crossing, at int64) {
	if !s.b.expiryWatched() {
		return
	}
	e := Expiry{
		VHost: x.from.vh.name, Queue: x.from.name, Ref: x.from.ref(x.settled.Seq, x.settled.ExpiresAt), At: at, Path: x.path, Action: x.action,
	}
	if of := x.about; of != nil {
		e.MessageID, e.Trace, e.Exchange, e.RoutingKey, e.To = of.id, of.trace, of.exchange, of.key, of.to
	}
	s.expiries.records = append(s.expiries.records, e)
}

// recorded says whether the details of a letter are recorded: of one that is tried again they
// are already.
func (x *crossing) recorded() bool {
	return x.about != nil && x.settled.Reason == queue.Expired && !x.tried
}

// describe keeps what the record of a dead letter will say of it: its id and where it
// goes.
func describe[T string | []byte](s *step, x *crossing, id, key T, targets []target) {
	if !x.recorded() {
		return
	}
	e := &s.expiries
	from := len(e.names)
	for _, t := range targets {
		e.names = append(e.names, t.queue.name)
	}
	x.about.id, x.about.key = keep(e, id), keep(e, key)
	x.about.exchange, x.about.to = x.set.dlx, e.names[from:len(e.names):len(e.names)]
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
	for ahead, i := s.b.ahead(), 0; i < len(e.records); i++ {
		e.records[i].ahead = ahead
	}
	if s.b.opts.OnExpired != nil {
		s.b.opts.OnExpired(e.records)
	}
	if fn := s.b.watcher.Load(); fn != nil {
		(*fn)(e.records)
	}
	for _, h := range e.held {
		s.b.store.Release(h.pos)
	}
	clear(e.records)
	clear(e.names)
	e.records, e.ids, e.names, e.held = e.records[:0], e.ids[:0], e.names[:0], e.held[:0]
}
