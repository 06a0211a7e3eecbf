package delivery

import (
	"cmp"

	"curfew/broker/queue"
	"curfew/broker/store"
)

// Rewrite gives a message other properties, which change makes of those that it has; nil: it keeps them. It stays
// where it is, with its number and its deadline: its entry refers to a copy from then on, as after compaction, and a
// crash leaves it with one or the other. change is called again if compaction has moved the message meanwhile; what
// it is given is valid until it returns. Nothing happens to a message that is gone. Error: store.ErrFull, or the
// store has failed.
func (q *Queue) Rewrite(seq queue.Seq, change func(properties, body []byte) []byte) error {
	s := q.env.Begin()
	defer s.Done()
	for {
		var old store.Pos
		if !q.locked(s, "read", func() bool {
			m, _, ok := q.core.Find(seq)
			if old = store.Pos(m.Pos); ok {
				q.env.Store.Retain(old, 1)
			}
			return ok
		}) {
			return nil
		}
		copied, err := func() (store.Pos, error) {
			defer q.env.Store.Release(old) // even if change panics
			m := q.env.Store.View(old)
			if m.Properties = change(m.Properties, m.Body); m.Properties == nil {
				return old, nil
			}
			return q.env.Store.Put(m, old.Durable(), 1)
		}()
		if err != nil || copied == old || q.locked(s, "rewrite", func() bool {
			found := q.core.Relocate(seq, uint64(old), uint64(copied))
			if found {
				x, terms, _ := termsOf(q.core, seq)
				q.env.Store.Replaced(store.Enqueue{
					Queue: q.ID, Seq: uint64(seq), Pos: copied, ExpiresAt: x.ExpiresAt, Flags: uint8(x.Flags), Durable: x.Flags&queue.Durable != 0,
					EnqueuedAt: cmp.Or(q.enqueued.at(seq), q.ages.entered(seq)),
				}, terms, old)
			}
			return found
		}) {
			return err
		}
		q.env.Store.Release(copied)
	}
}
