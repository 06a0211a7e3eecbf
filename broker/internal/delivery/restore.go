package delivery

import (
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
		if at == 0 {
			at = started
		}
		q.ages = q.ages.note(q.core, queue.Seq(e.Seq), at)
	}
	queue.Skip(q.core, above)
	q.env.Store.Amended(amended)
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
