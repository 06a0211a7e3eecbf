package delivery

import (
	"cmp"
	"slices"

	"curfew/broker/deadline"
	"curfew/broker/queue"
	"curfew/broker/store"
)

// Restore puts messages of the last run back in their places with their old deadlines, or, if keep
// is set, with none. New ones get numbers above that of above (0: any).
func (q *Queue) Restore(r *store.RecoveredQueue, keep bool, above queue.Seq) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var amended []store.Amend
	started := q.env.Clock.Stamp()
	if q.enqueued == nil {
		fillTimes(r.Entries, started)
	}
	for _, e := range r.Entries {
		flags := queue.Flags(e.Flags)
		if r.WasDelivered(e.Seq) {
			flags |= queue.Redelivered
		}
		if keep {
			e.ExpiresAt = 0
		}
		if q.env.TTLOff && e.ExpiresAt != 0 {
			e.ExpiresAt = 0
			amended = append(amended, store.Amend{Queue: r.Queue, Seq: e.Seq, Pos: e.Pos, Durable: true, Terms: e.Terms})
		}
		q.core.Restore(queue.Seq(e.Seq), queue.Message{
			Pos: uint64(e.Pos), ExpiresAt: e.ExpiresAt, Flags: flags,
			Bytes: uint32(len(q.env.Store.View(e.Pos).Body)),
		}, e.Deliveries)
		if e.WaitsUntil > started {
			q.core.Wait(queue.Seq(e.Seq), e.WaitsUntil)
			q.env.Timers.Add(q, e.WaitsUntil)
		}
		at := e.EnqueuedAt
		if at != 0 && q.enqueued != nil {
			q.enqueued.add(queue.Seq(e.Seq), at)
		}
		q.ages, _ = q.ages.note(q.core, queue.Seq(e.Seq), cmp.Or(at, started))
	}
	queue.Skip(q.core, above)
	q.env.Store.Amended(amended)
}

// fillTimes fills in when messages entered of which the journal does not know it: it has the time of each that has a mark (ages). One that follows
// another closely entered with it, or soon after. One behind a message that has left entered no later than the next of which it is known.
func fillTimes(entries []store.RecoveredEntry, started deadline.Instant) {
	next := started
	for i := range slices.Backward(entries) {
		e := &entries[i]
		if i+1 < len(entries) && queue.Seq(e.Seq).Priority() != queue.Seq(entries[i+1].Seq).Priority() {
			next = started
		}
		if e.EnqueuedAt != 0 {
			next = e.EnqueuedAt
		} else if i == 0 || entries[i-1].Seq+1 != e.Seq {
			e.EnqueuedAt = next
		}
	}
	for i := range entries {
		if e := &entries[i]; e.EnqueuedAt == 0 {
			e.EnqueuedAt = entries[i-1].EnqueuedAt
		}
	}
}

// Relocate implements store.Options.Relocate for the messages of the queue.
func (q *Queue) Relocate(seq queue.Seq, old, moved store.Pos) (store.Terms, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.core.Relocate(seq, uint64(old), uint64(moved)) {
		return q.Letters.RelocateLocked(seq, uint64(old), uint64(moved))
	}
	_, terms, _ := termsOf(q.core, seq)
	return terms, true
}
