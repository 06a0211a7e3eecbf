package forward

import (
	"slices"
	"time"

	"curfew/broker/amqp"
	"curfew/broker/deadline"
	"curfew/broker/internal/delivery"
	"curfew/broker/internal/message"
	"curfew/broker/internal/topology"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// A turn moves letters from the front of one queue's line to where they go. It is
// bounded, so that neither the caller that takes one nor the letters of another queue wait
// for long.
const (
	// turnTime is how long a turn begins letters. A letter that takes longer ends it.
	turnTime = time.Millisecond
	// turnLetters and turnEntries bound its memory: the most letters that it begins, and the most entries
	// that it makes in queues. A letter with more targets goes on in the next turn of its queue.
	turnLetters = 256
	turnEntries = 1024
	// roundLetters is how many letters are begun in a round of turns of all queues that wait, about: some 50 ms. Where thousands wait, each
	// turn begins fewer letters, down to turnFewest, for which a turn is still worth its while.
	roundLetters = 1 << 14
	turnFewest   = 8
)

// budget is what a transition may still spend on turns.
type budget struct {
	f                *Forwarder
	began            time.Time
	letters, entries int
	begun            bool // a letter
}

// budget is that of turns with up to most letters.
func (f *Forwarder) budget(most int) budget {
	return budget{f: f, began: f.now(), letters: most, entries: turnEntries}
}

// left reports whether another letter may be begun.
func (b *budget) left() bool {
	return !b.begun || b.letters > 0 && b.entries > 0 && b.f.now().Sub(b.began) < turnTime
}

// end notes how long the turns took.
func (b *budget) end() { b.f.Turns.Add(b.f.env.Clock.Now(), b.f.now().Sub(b.began)) }

// turn is the scratch of one turn.
type turn struct {
	f        *Forwarder
	letters  *VHostLetters
	s        *delivery.Transition // of what it does to queues
	moves    []letterMove
	details  []deadline.Expiry // of the moves, if somebody asks for them
	item     delivery.Item     // of the current letter
	batch    delivery.Batch
	routes   topology.Routes
	targets  topology.TargetSet
	dropping bool // the virtual host is deleted: letters on their way go nowhere

	props, headers, exchange, key []byte // of the current letter
}

// letterMove is the move of one letter, while a turn works on it. It holds a reference of its own
// to the new message and to the receipt: their consumers may be done with them before the move is
// journaled.
type letterMove struct {
	delivery.Letter
	delivery.Transfer
	from   *delivery.Letters
	action deadline.Action

	pos      store.Pos         // of the new message; 0: it goes nowhere
	owes     bool              // a receipt for its expiry, which is made once it has arrived
	receipt  store.Pos         // of that receipt, which is journaled with it; 0: none
	memory   bool              // the new message could not be journaled
	targets  []topology.Target // the queues that it has not yet entered; the turn's scratch memory
	begun    *delivery.Item    // with which a later turn goes on; nil: the turn's own
	missing  bool              // it has no target now, and has to wait for one
	retained bool              // its queue keeps it until all targets have it
	about    *deadline.Expiry  // what the record of an expiry says about the message and its dead letter; nil: nobody asks for that
}

// run moves letters of q. Each is put into the queues that it goes to; a queue is locked once for
// all letters. Then the move is journaled as one record. Messages that expire or overflow because
// of it are posted in turn. more: there are other letters in line. held: the next one would take
// much memory, and has to wait until publishers may go on. If another turn is moving letters of q
// nothing is done, since that turn's caller takes care of the rest. No lock may be held.
func (t *turn) run(l *VHostLetters, q *delivery.Letters, b *budget) (more, held bool) {
	t.letters = l
	n, goesOn := q.BeginTurn(b.letters, t.makeRoom, func(i int, l *delivery.Letter) {
		x := &t.moves[i]
		*x = letterMove{Letter: *l, from: q, Transfer: delivery.Transfer{Into: x.Into[:0]}}
		t.s.Transfers[i] = &x.Transfer
	})
	if n == 0 {
		return false, false
	}
	t.addDetails(n)
	if goesOn {
		t.moves[0] = l.resume(q)
	}
	t.s.ReadClock()
	t.dropping = l.VHost.Gone()
	begun := 0
	for ; begun < n && b.left(); begun++ {
		if held = !t.begin(&t.moves[begun], begun); held {
			break
		}
		b.letters--
		b.begun = true
		t.addToBatch(&t.moves[begun], b)
	}
	t.batch.Flush(t.s)
	arrivedAt := t.f.env.Clock.Now()
	t.giveReceipts(begun, arrivedAt)
	if q.Delayed { // a search for delayed messages finds them in line until the turn ends (VHost.leaving)
		for i := range begun {
			t.f.env.Store.Retain(store.Pos(t.moves[i].Settled.Pos), 1)
		}
	}
	done := 0
	for i := range begun {
		if x := &t.moves[i]; len(x.targets) == 0 { // only the last may have more
			t.arrive(x, arrivedAt)
			done++
		}
	}
	t.f.env.Feed.Push(t.s.Events)
	t.s.Events = t.s.Events[:0]
	if begun > done {
		t.setAside(q, done)
	}
	more = q.EndTurn(done, begun > done)
	if q.Delayed {
		for i := range begun {
			t.f.env.Store.Release(store.Pos(t.moves[i].Settled.Pos))
		}
	}
	if len(t.s.Expiries.Records)+len(t.s.Expiries.Deaths) > 0 {
		t.s.Report()
	}
	l.passed(done)
	return more, held
}

// makeRoom makes room for the moves of n letters.
func (t *turn) makeRoom(n int) {
	t.moves = slices.Grow(t.moves[:0], n)[:n]
	t.s.Transfers = slices.Grow(t.s.Transfers[:0], n)[:n]
}

// addDetails gives n letters room for their details, if somebody asks for them.
func (t *turn) addDetails(n int) {
	if t.f.env.Expiries.Needs() < deadline.WithMessage {
		return
	}
	t.details = slices.Grow(t.details[:0], n)[:n]
	clear(t.details)
	for i := range n {
		t.moves[i].about = &t.details[i]
	}
}

// setAside keeps the move that goes on in a later turn.
func (t *turn) setAside(q *delivery.Letters, at int) {
	x := t.moves[at]
	t.moves[at].Into = nil
	if x.begun == nil {
		x.detach(t)
	}
	t.letters.setAside(q, x)
}

// begin finds out where a letter goes and stores its copy. A letter that an earlier turn has
// begun goes on as it was. false: it has to wait.
func (t *turn) begin(x *letterMove, at int) bool {
	switch {
	case x.begun != nil:
		t.item = *x.begun
		t.item.Move = at
		return true
	case t.dropping:
		return true
	case x.from.Delayed:
		return t.activate(x, at)
	}
	return t.address(x, at)
}

// addToBatch adds the letter to the batch for as many of its targets as the budget allows.
func (t *turn) addToBatch(x *letterMove, b *budget) {
	n := min(len(x.targets), b.entries)
	b.entries -= n
	now := x.targets[:n]
	if x.targets = x.targets[n:]; x.memory {
		for _, to := range now {
			one := t.item
			one.Bound, one.Message.ExpiresAt, one.Named = to.Bound, one.Named.Earlier(one.Message.ExpiresAt, to.Queue.Settings()), nil
			t.batch.Add(&to.Queue.Messages, to.CeilingMillis, &one)
		}
		return
	}
	flags := t.item.Message.Flags
	topology.AddAll(&t.batch, now, &t.item)
	t.item.Message.Flags = flags
}

// detach copies what outlasts the turn.
func (x *letterMove) detach(t *turn) {
	it := t.item
	x.begun = &it
	x.Into = slices.Grow(x.Into, len(x.targets))
	x.targets = slices.Clone(x.targets)
	if of := x.about; of != nil {
		x.about = &deadline.Expiry{
			MessageID: slices.Clone(of.MessageID), RoutingKey: slices.Clone(of.RoutingKey), Exchange: of.Exchange, To: slices.Clone(of.To),
			Trace: deadline.Trace{Parent: slices.Clone(of.Trace.Parent), State: slices.Clone(of.Trace.State)},
		}
	}
}

// intoKeep is the largest capacity that a move keeps for Into.
const intoKeep = 1 << 10

// dropReferences drops all references from the scratch memory, and gives up the memory itself if it is much.
func (t *turn) dropReferences() {
	all := t.moves[:cap(t.moves)]
	for i := range all {
		if all[i].from == nil {
			break // no turn has used the rest
		}
		into := all[i].Into[:0]
		if cap(into) > intoKeep {
			into = nil
		}
		all[i] = letterMove{Transfer: delivery.Transfer{Into: into}}
	}
	clear(t.details[:cap(t.details)])
	t.routes = topology.Routes{}
	t.targets.Reset()
}

// send copies the message of a letter into the store. it is what is known about it so far.
func (t *turn) send(x *letterMove, at int, targets []topology.Target, it *delivery.Item, m store.Message) {
	pos, err := t.f.env.Store.PutMoved(m, topology.AnyPersists(targets, it.Message.Flags), 1+len(targets))
	x.memory = err != nil
	if err != nil {
		// Not even the reserve has room. The letter goes on in memory, and its original stays
		// in the journal: a restart would move it again.
		t.f.log.Error("dead letter is kept in memory only", t.fields(x, err)...)
		x.Unsaved = true
		pos, err = t.f.env.Store.PutMoved(m, false, 1+len(targets))
	}
	if err != nil { // its death headers make it too large for a record
		t.f.log.Error("dead letter is lost", t.fields(x, err)...)
		t.f.env.Counters.DeadLettersLost.Add(1)
		x.action, x.Unsaved = deadline.Dropped, false
		return
	}
	x.pos, x.targets = pos, targets
	it.Message.Pos, it.Message.Bytes, it.Move = uint64(pos), x.Settled.Bytes, at
	if x.memory {
		it.Message.Flags &^= queue.Durable
	}
	t.item = *it
}

// arrive journals that a letter has arrived, and reports it.
func (t *turn) arrive(x *letterMove, at deadline.Instant) {
	switch {
	case x.Refused || x.missing:
		t.retain(x)
	case x.Queued && !x.Unsaved:
		t.f.env.Store.Moved(delivery.SettleRecord(x.from.ID, &x.Settled), x.Into)
	default:
		t.f.env.Store.Enqueued(x.Into)
	}
	if !x.Queued {
		t.f.env.Store.Release(store.Pos(x.Settled.Pos))
	}
	if x.Tried && !x.retained {
		x.from.Retained.RetrySoon(t.s)
	}
	if x.pos != 0 {
		t.f.env.Store.Release(x.pos)
	}
	if x.receipt != 0 {
		t.f.env.Store.Release(x.receipt)
	}
	t.report(x, at)
}

// report records an arrival, once: of a message that expired, of a delayed message that was
// parked, and of other deaths if somebody asks for them.
func (t *turn) report(x *letterMove, at deadline.Instant) {
	stream := t.f.env.Expiries
	switch e := &t.s.Expiries; {
	case x.from.Delayed && x.action != deadline.Parked, !x.from.Delayed && x.Tried:
	case x.from.Delayed || x.Settled.Reason == queue.Expired:
		if stream.Watched() {
			e.Records = append(e.Records, t.recordOf(x, at))
		}
	case stream.DeathsWatched():
		r := t.recordOf(x, at)
		r.Reason = x.Settled.Reason.String()
		e.Deaths = append(e.Deaths, r)
	}
}

// retain journals the arrivals of a dead letter that not all targets took, and lets its source
// keep it.
func (t *turn) retain(x *letterMove) {
	t.f.env.Store.Enqueued(x.Into)
	x.action, x.retained = deadline.DeadLettered, true
	if !x.from.Retained.Keep(t.s, x.Letter, x.Into, x.receipt) {
		x.action, x.retained = deadline.Dropped, false
		t.f.env.Counters.DeadLettersLost.Add(1)
		t.f.env.Store.Settled([]store.Settle{delivery.SettleRecord(x.from.ID, &x.Settled)})
	}
}

// missingTargets leaves out the targets that have the dead letter already.
func (x *letterMove) missingTargets(targets []topology.Target) []topology.Target {
	has := contained(x.Done, len(targets))
	return slices.DeleteFunc(targets, func(t topology.Target) bool { return has(t.Queue.ID) })
}

// recordOf is the record of a message that has arrived.
func (t *turn) recordOf(x *letterMove, at deadline.Instant) deadline.Expiry {
	var e deadline.Expiry
	if x.about != nil {
		e = *x.about
	}
	e.VHost, e.Queue, e.Arrived, e.Path, e.Action = t.letters.VHost.Name(), x.from.Name, at, x.Path, x.action
	e.Ref = deadline.Ref{Deadline: x.Settled.ExpiresAt, Queue: x.from.ID, Seq: uint64(x.Settled.Seq)}
	return e
}

// recorded reports whether the details of a letter go into a record. Those of a letter that is
// tried again already have.
func (x *letterMove) recorded(s *delivery.Transition) bool {
	return x.about != nil && !x.Tried && (x.Settled.Reason == queue.Expired || s.Env.Expiries.DeathsWatched())
}

// describe keeps what the record of a dead letter will say about it: its id and where it goes.
func describe[T string | []byte](s *delivery.Transition, x *letterMove, id, key T, targets []topology.Target) {
	if !x.recorded(s) {
		return
	}
	e := &s.Expiries
	from := len(e.Names)
	for _, t := range targets {
		e.Names = append(e.Names, t.Queue.Name)
	}
	x.about.MessageID, x.about.RoutingKey = delivery.CopyText(e, id), delivery.CopyText(e, key)
	x.about.Exchange, x.about.To = x.Settings.DeadLetterExchange, e.Names[from:len(e.Names):len(e.Names)]
}

// trace keeps the trace context of a dead letter for its record.
func (t *turn) trace(x *letterMove, src store.Message) {
	if t.f.env.Expiries.Needs() < deadline.WithTrace || !x.recorded(t.s) {
		return
	}
	view, err := amqp.ViewProperties(src.Properties)
	if err != nil {
		return
	}
	c := message.TraceOf(view.Headers)
	x.about.Trace = deadline.Trace{Parent: delivery.CopyText(&t.s.Expiries, c.Parent), State: delivery.CopyText(&t.s.Expiries, c.State)}
}
