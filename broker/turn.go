package broker

import (
	"slices"

	"curfew/broker/queue"
	"curfew/broker/store"
)

// A turn moves letters from the front of one queue's line to where they go. It is
// bounded, so that neither the caller who takes one nor the letters of another queue wait
// for long.
const (
	// turnLetters and turnEntries are the most letters that a turn begins, and the most
	// places in queues that it gives them. A letter with more targets goes on in the next
	// turn of its queue.
	turnLetters = 256
	turnEntries = 1024
)

// budget is what a step may still spend on turns.
type budget struct{ letters, entries int }

// turn is the scratch of one turn.
type turn struct {
	crossings []crossing
	details   []details // of the crossings, where somebody asks for them
	item      item      // of the letter under way
	batch     batch
	routes    routes
	targets   targetSet
	dropping  bool // the virtual host is deleted: what is on its way goes nowhere

	props, headers, exchange, key []byte // of the letter under way
}

// crossing is one letter's way, while a turn is at it. It holds a reference of its own
// to the new message, and to the receipt: their consumers may be done with them before the
// move is journaled.
type crossing struct {
	letter
	from   *Queue
	action Action

	pos     store.Pos // of the new message; 0: it goes nowhere
	receipt store.Pos // of the receipt of its expiry, which goes with it; 0: none
	memory  bool      // the new message could not be journaled
	targets []target  // the queues it has yet to enter; the turn's scratch
	into    []store.Enqueue
	begun   *item    // with which a later turn goes on; else the turn's
	refused bool     // by a target that it has to wait for
	missing bool     // it has no target now, and has to wait for one
	about   *details // nil: nobody asks
}

// details are what the record of an expiry says of the message and its dead letter.
type details struct {
	id, key  []byte
	exchange string
	to       []string
	trace    TraceContext
}

// entered notes that the message of a crossing stands in a queue.
func (t *turn) entered(at int, e store.Enqueue) {
	t.crossings[at].into = append(t.crossings[at].into, e)
}

// refuse notes that a queue would not take the message of a crossing.
func (t *turn) refuse(at int) { t.crossings[at].refused = true }

// turn moves letters of q: each is put into the queues it goes to, one lock per queue for
// all, then its leaving and arriving are journaled as one. What that expires or
// overflows in turn is posted. more says that there are others in line; held that the next
// has to wait until publishers may go on, since it would take much memory. Nothing is done
// while another turn is at the queue: that one's taker sees to the rest. No lock is
// held.
func (s *step) turn(q *Queue, b *budget) (more, held bool) {
	t := &s.turns
	n := q.beginTurn(t, b.letters, s.b.opts.OnExpired != nil)
	if n == 0 {
		return false, false
	}
	s.readClock()
	t.dropping = q.vh.gone()
	begun := 0
	for ; begun < n && b.letters > 0 && b.entries > 0; begun++ {
		if held = !s.begin(&t.crossings[begun], begun); held {
			break
		}
		b.letters--
		t.give(&t.crossings[begun], b)
	}
	t.batch.flush(s)
	if q.delays != nil { // who looks for delayed messages finds them in line until the turn ends (leaving)
		for i := range begun {
			s.b.store.Retain(store.Pos(t.crossings[i].settled.Pos), 1)
		}
	}
	arrivedAt := s.b.clock.nowAt()
	done := 0
	for i := range begun {
		if x := &t.crossings[i]; len(x.targets) == 0 { // only the last may have more
			s.arrive(x, arrivedAt)
			done++
		}
	}
	s.b.feed.push(s.events)
	s.events = s.events[:0]
	more = q.endTurn(t, begun, done)
	if q.delays != nil {
		for i := range begun {
			s.b.store.Release(store.Pos(t.crossings[i].settled.Pos))
		}
	}
	if len(s.expiries.records) > 0 {
		s.report()
	}
	s.b.forwarder.passed(q.vh, done)
	return more, held
}

// beginTurn copies the letters that a turn may begin.
func (q *Queue) beginTurn(t *turn, most int, detailed bool) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.letters
	if l.moving > 0 || l.len() == 0 {
		return 0
	}
	n = min(most, l.len())
	l.moving = n
	t.crossings = slices.Grow(t.crossings[:0], n)[:n]
	for i := range n {
		x := &t.crossings[i]
		*x = crossing{letter: *l.at(l.passed + uint64(i)), from: q, into: x.into[:0]}
	}
	if detailed {
		t.details = slices.Grow(t.details[:0], n)[:n]
		clear(t.details)
		for i := range n {
			t.crossings[i].about = &t.details[i]
		}
	}
	if l.begun != nil {
		t.crossings[0] = *l.begun
	}
	return n
}

// endTurn takes the letters off that are done, and keeps one that is not.
func (q *Queue) endTurn(t *turn, begun, done int) (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := &q.letters
	if l.begun = nil; begun > done {
		x := t.crossings[done]
		t.crossings[done].into = nil
		if x.begun == nil {
			x.keep(t)
		}
		l.begun = &x
	}
	l.moving = 0
	l.pass(done)
	return l.len() > 0
}

// begin finds out where a letter goes and has its copy stored. A letter that a turn has
// begun before goes on as it was. false: it has to wait.
func (s *step) begin(x *crossing, at int) bool {
	t := &s.turns
	switch {
	case x.begun != nil:
		t.item = *x.begun
		t.item.move = at
		return true
	case t.dropping:
		return true
	case x.from.delays != nil:
		return s.activate(x, at)
	}
	return s.address(x, at)
}

// give hands the crossing to so many of its targets as the budget has room for.
func (t *turn) give(x *crossing, b *budget) {
	n := min(len(x.targets), b.entries)
	b.entries -= n
	now := x.targets[:n]
	if x.targets = x.targets[n:]; x.memory {
		for _, to := range now {
			t.batch.add(to, &t.item)
		}
		return
	}
	flags := t.item.message.Flags
	t.batch.addAll(now, &t.item)
	t.item.message.Flags = flags
}

// keep gives what outlasts the turn memory of its own.
func (x *crossing) keep(t *turn) {
	it := t.item
	x.begun = &it
	x.into = slices.Grow(x.into, len(x.targets))
	x.targets = slices.Clone(x.targets)
	if of := x.about; of != nil {
		x.about = &details{
			id: slices.Clone(of.id), key: slices.Clone(of.key), exchange: of.exchange, to: slices.Clone(of.to),
			trace: TraceContext{slices.Clone(of.trace.Parent), slices.Clone(of.trace.State)},
		}
	}
}

// intoKeep is how many places' room the scratch of a letter may keep.
const intoKeep = 1 << 10

// rest drops what the scratch refers to, but not the memory, unless it is much.
func (t *turn) rest() {
	all := t.crossings[:cap(t.crossings)]
	for i := range all {
		if all[i].from == nil {
			break // no turn came so far
		}
		into := all[i].into[:0]
		if cap(into) > intoKeep {
			into = nil
		}
		all[i] = crossing{into: into}
	}
	clear(t.details[:cap(t.details)])
	t.routes = routes{}
	t.targets.reset()
}

// send copies the message of a letter into the store; it is what is known of it so far.
func (s *step) send(x *crossing, at int, targets []target, it *item, m store.Message) {
	pos, err := s.b.store.PutMoved(m, anyPersists(targets, it.message.Flags), 1+len(targets))
	x.memory = err != nil
	if err != nil {
		// Not even the reserve has room. The letter goes on in memory, and its original stays
		// in the journal: a restart would move it again.
		s.b.log.Error("dead letter is kept in memory only", x.from.fields(err)...)
		x.unsaved = true
		pos, err = s.b.store.PutMoved(m, false, 1+len(targets))
	}
	if err != nil { // its death headers make it larger than a record can be
		s.b.log.Error("dead letter is lost", x.from.fields(err)...)
		s.b.counters.deadLettersLost.Add(1)
		x.action, x.unsaved = Dropped, false
		return
	}
	x.pos, x.targets = pos, targets
	it.message.Pos, it.message.Bytes, it.move = uint64(pos), x.settled.Bytes, at
	if x.memory {
		it.message.Flags &^= queue.Durable
	}
	s.turns.item = *it
}

// arrive journals that a letter is where it goes, and reports it.
func (s *step) arrive(x *crossing, at int64) {
	switch {
	case x.refused || x.missing:
		s.retain(x)
	case x.queued && !x.unsaved:
		s.b.store.Moved(x.from.settleRecord(&x.settled), x.into)
	default:
		s.b.store.Enqueued(x.into)
	}
	if !x.queued {
		s.b.store.Release(store.Pos(x.settled.Pos))
	}
	if x.tried && x.action != Retained {
		x.from.retrySoon(s)
	}
	if x.pos != 0 {
		s.b.store.Release(x.pos)
	}
	if x.receipt != 0 {
		s.b.store.Release(x.receipt)
	}
	if x.tells() {
		s.noteArrived(x, at)
	}
}

// tells says whether the arrival is told as an expiry: once, and of a delayed message
// only where it could not go on.
func (x *crossing) tells() bool {
	if x.from.delays != nil {
		return x.action == Parked
	}
	return x.settled.Reason == queue.Expired && !x.tried
}
