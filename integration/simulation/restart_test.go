package simulation

import (
	"os"
	"testing/synctest"
	"time"

	"curfew/broker"
	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// durable is what the journal contains at some point in its history: the queued persistent
// messages of durable queues.
type durable []durableEntry

// durableEntry is an entry that a restart may find.
type durableEntry struct {
	key   durableKey
	entry entry // a copy
}

// durableKey is what the journal contains of an entry.
type durableKey struct {
	queue, seq uint64
	deadline   deadline.Instant
	body       string
}

// remember adds the present state to those that a restart may find. A restart finds
// everything since the last commit up to some call, or a part of what that call did: the journal is
// written in order, and a call that works on several messages writes a record for each.
func (w *world) remember() {
	if !w.plan.disk || w.failure != "" {
		return
	}
	var d durable
	for _, e := range w.model.live() {
		if e.persistent() && e.queue.outlives() {
			d = append(d, durableEntry{keyOf(e), *e})
		}
	}
	w.durables = append(w.durables, d)
}

func keyOf(e *entry) durableKey {
	return durableKey{e.queue.id, uint64(e.seq), e.deadline, string(e.body)}
}

// commit waits until everything so far is confirmed.
func (w *world) commit() {
	if !w.plan.disk {
		return
	}
	confirmed, asOf := false, 0
	w.call(func() {
		asOf = len(w.durables)
		w.broker.Commit(func(err error) {
			if err != nil {
				w.fail("commit: %v", err)
			}
			confirmed = true
		})
	}, "commit")
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !confirmed {
		w.fail("the commit was not confirmed")
	}
	if w.failure == "" {
		w.durables = w.durables[asOf:]
	}
}

// restart ends the broker and everything in its process, and starts another one with the
// contents of the disk: everything after a clean end, or what was written so far.
func (w *world) restart() {
	if !w.plan.disk {
		return
	}
	for len(w.watchers) > 0 {
		w.kill(w.watchers[0])
	}
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failure != "" {
		return
	}
	clean := chance(w.rng, 0.4)
	w.note("the broker ends, cleanly %v", clean)
	if w.pump != nil {
		w.mu.Unlock() // the monitor may need the lock to pass on the last events
		w.pump.end()
		w.mu.Lock()
		w.pump = nil
	}
	w.reopen(clean)
}

// reopen leaves the directory as the end of the process leaves it, and starts again.
func (w *world) reopen(clean bool) {
	w.restarts++
	old := w.dir
	if clean {
		w.durables = w.durables[max(len(w.durables)-1, 0):]
	} else {
		w.dir = w.image()
		defer os.RemoveAll(old)
	}
	clear(w.queues)
	w.closeBroker()
	kept, ok := w.recovered()
	if !ok {
		return
	}
	if chance(w.rng, 0.5) { // some time passes before it starts again
		w.jumped.Add(w.rng.Int64N(int64(10 * time.Second)))
	}
	w.model.revive(kept, w.now())
	for _, c := range w.clients {
		c.consumers, c.unacked = nil, nil
	}
	if w.redis != nil {
		w.redis.restarted()
	}
	w.open(w.dir)
	w.reconnect()
	w.durables = nil
	w.remember()
	if w.failure == "" {
		w.compareQueues()
	}
}

// closeBroker ends the broker, if there is one.
func (w *world) closeBroker() {
	if w.broker == nil {
		return
	}
	if err := w.broker.Close(); err != nil {
		w.fail("close: %v", err)
	}
	w.broker = nil
}

// recovered reads the journal independently and finds the point in history that it shows,
// which must not be older than the last commit.
func (w *world) recovered() (durable, bool) {
	s, r, err := store.Open(store.Options{Dir: w.dir, SegmentBytes: segmentBytes})
	if err != nil {
		w.fail("recovery: %v", err)
		return nil, false
	}
	found := map[durableKey]store.Terms{}
	for _, q := range r.Queues {
		if w.model.byID[q.Queue] == nil {
			continue // deleted: the definitions are newer than the journal
		}
		for _, e := range q.Entries {
			found[durableKey{q.Queue, e.Seq, e.ExpiresAt, string(s.View(e.Pos).Body)}] = e.Terms
		}
	}
	if err := s.Close(); err != nil {
		w.fail("recovery: %v", err)
	}
	for i := len(w.durables) - 1; i >= 0; i-- {
		if kept := w.durables[i].existing(w.model); kept.is(found) {
			w.note("recovered: %d messages, as after all but %d calls", len(kept), len(w.durables)-1-i)
			return kept, true
		}
	}
	for i := len(w.durables) - 1; i > 0; i-- {
		if kept, ok := within(w.durables[i-1].existing(w.model), w.durables[i].existing(w.model), found); ok {
			w.note("recovered: %d messages, in the middle of a call, as after all but %d", len(kept), len(w.durables)-1-i)
			return kept, true
		}
	}
	w.describeDifference(found)
	return nil, false
}

// within returns what was found, if a call was cut off that led from one state to another. Each of its records
// moves a message, or removes it: what neither arrived nor left is there, and no message has arrived that is
// still where it was, or left without having arrived. A message that left several queues is not followed from each of them.
func within(before, after durable, found map[durableKey]store.Terms) (kept durable, ok bool) {
	type change struct{ leave, left, arrive, arrived int }
	changes := map[int]*change{}
	of := func(e *durableEntry) *change {
		if changes[e.entry.id] == nil {
			changes[e.entry.id] = &change{}
		}
		return changes[e.entry.id]
	}
	there := func(e *durableEntry) bool { _, there := found[e.key]; return there }
	was, is := before.keys(), after.keys()
	for i := range before {
		e := &before[i]
		switch {
		case there(e):
			kept = append(kept, *e)
		case is[e.key]:
			return nil, false
		}
		if !is[e.key] {
			c := of(e)
			if c.leave++; !there(e) {
				c.left++
			}
		}
	}
	for i := range after {
		e := &after[i]
		if was[e.key] {
			continue
		}
		c := of(e)
		if c.arrive++; there(e) {
			c.arrived++
			kept = append(kept, *e)
		}
	}
	for _, c := range changes {
		if c.left == 0 && c.arrived > 0 || c.left == c.leave && c.arrived < c.arrive {
			return nil, false
		}
	}
	return kept, kept.is(found)
}

func (d durable) keys() map[durableKey]bool {
	keys := make(map[durableKey]bool, len(d))
	for i := range d {
		keys[d[i].key] = true
	}
	return keys
}

// describeDifference describes the difference between what was found and the last remembered state.
func (w *world) describeDifference(found map[durableKey]store.Terms) {
	var got, want []durableKey
	for k := range found {
		got = append(got, k)
	}
	for _, e := range w.durables[len(w.durables)-1].existing(w.model) {
		want = append(want, e.key)
	}
	w.fail("recovered what never was since the last commit; against the last of %d states: missing %+v, too many %+v",
		len(w.durables), missing(want, got), missing(got, want))
}

// existing omits entries of queues that are gone.
func (d durable) existing(m *model) (kept durable) {
	for _, e := range d {
		if m.byID[e.key.queue] != nil {
			kept = append(kept, e)
		}
	}
	return kept
}

func (d durable) is(found map[durableKey]store.Terms) bool {
	for i := range d {
		terms, there := found[d[i].key]
		e := &d[i].entry
		if !there || (queue.Flags(terms.Flags)&queue.Died != 0) != (len(e.deaths) > 0) {
			return false
		}
		if e.queue.counts() && int64(terms.Deliveries) != e.failed {
			return false
		}
	}
	return len(d) == len(found)
}

// revive resets the queues to what survived the process: durable queues with what was
// recovered, everything ready and marked as redelivered.
func (m *model) revive(kept durable, nowNanos int64) {
	m.begin(nowNanos)
	for _, e := range m.live() {
		e.state, e.end = gone, crashed
	}
	for _, q := range m.sorted() {
		q.entries, q.consumers, q.owner = nil, nil, nil
		q.last, q.highTaken = make([]uint64, len(q.last)), 0
		if !q.outlives() {
			m.unbind(q)
			delete(m.queues, q.name)
			delete(m.byID, q.id)
			continue
		}
		m.use(q)
	}
	for i := range kept {
		e := kept[i].entry
		q := e.queue
		e.state, e.end, e.redelivered, e.tracked = ready, "", true, false
		q.insert(&e)
		p := e.seq.Priority()
		q.last[p] = max(q.last[p], uint64(e.seq)&(1<<56-1))
		m.all = append(m.all, &e)
	}
}

// reconnect looks up the queues again and restores the order of their bindings, in which
// dead letters reach several queues.
func (w *world) reconnect() {
	for _, m := range w.model.sorted() {
		q, err := w.vhost.Queues.Get(m.name)
		if err != nil || q.ID != m.id {
			w.fail("%s did not outlive the restart: %v", m.name, err)
			return
		}
		w.queues[m] = q
	}
	for _, do := range []func(broker.Owner, broker.Binding) error{w.vhost.Unbind, w.vhost.Bind} {
		for _, b := range w.model.bindings {
			if err := do(nil, broker.Binding{Source: b.exchange, Destination: b.to.name, RoutingKey: b.key}); err != nil {
				w.fail("%v", err)
			}
		}
	}
	w.jumpAt = time.Now() // deadlines that passed meanwhile are due now
}
