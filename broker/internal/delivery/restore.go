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
		if at != 0 || q.enqueued != nil {
			q.ages, _ = q.ages.note(q.core, queue.Seq(e.Seq), cmp.Or(at, started))
		}
	}
	queue.Skip(q.core, above)
	q.env.Store.Amended(amended)
}

// fillTimes fills in when messages entered that follow one which has left: no later than the next of which the journal knows it, or than next. It has
// the times of those with a mark (ages); one that follows another closely entered with it, or soon after.
func fillTimes(entries []store.RecoveredEntry, next deadline.Instant) {
	started := next
	for i := range slices.Backward(entries) {
		e := &entries[i]
		if i+1 < len(entries) && queue.Seq(e.Seq).Priority() != queue.Seq(entries[i+1].Seq).Priority() {
			next = started
		}
		if e.EnqueuedAt == 0 && (i == 0 || entries[i-1].Seq+1 != e.Seq) {
			e.EnqueuedAt = next
		}
		next = cmp.Or(e.EnqueuedAt, next)
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
